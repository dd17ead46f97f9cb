import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import type { Duplex } from "node:stream";
import { parseRelayUrl, type RelayScheme, type RelayUrl } from "../../../src/domain/relay-url.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import type { MeetingTimes } from "../../../src/roles/relay-host/guest.ts";
import { journal } from "../../../src/roles/relay-host/journal.ts";
import type { MeetingLimits } from "../../../src/roles/relay-host/limits.ts";
import { RelayHost } from "../../../src/roles/relay-host/relay-host.ts";
import { accept, type JoinOptions, join } from "../../../src/transport/meeting/join.ts";
import { roomOf } from "../../../src/transport/meeting/proof.ts";
import { type Joining, type RegisterOptions, type Registration, register } from "../../../src/transport/meeting/register.ts";
import { wayOut } from "../../../src/transport/outbound/way-out.ts";
import { makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { type Ed25519Signer, signerOf } from "../../../src/transport/session/signer.ts";
import { authority } from "../../transport/outbound/certificates.ts";

export const TOKEN = "a-token-of-a-test-0123456789abcdef";
export const SCHEMES = ["wss", "ws", "tls", "tcp"] as const;

const LIMITS: MeetingLimits = {
  connections: 8_192,
  connectionsPerAddress: 1_024,
  openingsPerAddress: 600,
  openingsPerKey: 120,
  workersPerToken: 4_096,
  workersPerAddress: 256,
  joinsPerAddress: 256,
  joinsPerToken: 4_096,
  joinsPerRoom: 64,
  joinsPerKey: 64,
};

export const newSigner = (): Ed25519Signer => signerOf(makeKeyPair("a test").privateKey);

export interface PlaceOptions {
  readonly limits?: Partial<MeetingLimits>;
  readonly times?: Partial<MeetingTimes>;
  readonly names?: readonly string[];
  readonly tokens?: readonly string[];
  readonly edgeAddressHeader?: string;
}

/** A relay-host in this process, on loopback and on every carrier, and ways to it. */
export class Place {
  readonly relay: RelayHost;
  readonly lines: string[] = [];
  readonly urls: Readonly<Record<RelayScheme, RelayUrl>>;
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "relay-host-"));
  readonly #caFile: string;
  readonly #open = new Set<Duplex>();

  constructor({ limits = {}, times = {}, names = [], tokens = [TOKEN], edgeAddressHeader }: PlaceOptions = {}) {
    const ca = authority(this.directory);
    this.#caFile = ca.file;
    const { cert, key } = ca.issue("localhost", "DNS:localhost,IP:127.0.0.1");
    const tls = { cert: fs.readFileSync(cert, "utf8"), key: fs.readFileSync(key, "utf8") };
    this.relay = new RelayHost({
      tokens,
      names,
      limits: { ...LIMITS, ...limits },
      edgeAddressHeader: edgeAddressHeader ?? null,
      clock: systemClock,
      journal: journal(systemClock, (line) => void this.lines.push(line)),
      times,
    });
    const at = (kind: "tls" | "ws" | "tcp"): number =>
      this.relay.open({ kind, address: { host: "127.0.0.1", port: 0 }, tls: kind === "tls" ? tls : null }).port;
    const ports = { tls: at("tls"), ws: at("ws"), tcp: at("tcp") };
    this.urls = {
      wss: parseRelayUrl(`wss://localhost:${ports.tls}/below/an/edge`),
      ws: parseRelayUrl(`ws://localhost:${ports.ws}`),
      tls: parseRelayUrl(`tls://localhost:${ports.tls}`),
      tcp: parseRelayUrl(`tcp://localhost:${ports.tcp}`),
    };
  }

  async close(): Promise<void> {
    for (const duplex of this.#open) duplex.destroy();
    this.relay.close();
    fs.rmSync(this.directory, { recursive: true });
    await Bun.sleep(0);
  }

  /** A connection of TCP to a carrier's port. */
  async socket(scheme: RelayScheme): Promise<net.Socket> {
    const socket = net.connect({ host: "127.0.0.1", port: this.urls[scheme].port, noDelay: true });
    socket.on("error", () => undefined);
    this.#open.add(socket);
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return socket;
  }

  /** A carrier's stream. */
  async dial(scheme: RelayScheme, token = TOKEN): Promise<Duplex> {
    const socket = await this.socket(scheme);
    const surroundings = { variables: {}, caFiles: [{ from: "a test", path: this.#caFile }] };
    const duplex = await wayOut({ url: this.urls[scheme], token, version: "test", surroundings }).climb(
      socket,
      AbortSignal.timeout(10_000),
    );
    duplex.on("error", () => undefined);
    this.#open.add(duplex);
    return duplex;
  }

  /** The same, from an address that an edge names. */
  async dialFrom(address: string): Promise<Duplex> {
    const whole = await this.socket("ws");
    const write = whole.write.bind(whole);
    // The head of the request is written in one piece.
    whole.write = ((head: string | Buffer, ...rest: []) => {
      whole.write = write;
      return write(String(head).replace("\r\n", `\r\nX-Forwarded-For: ${address}\r\n`), ...rest);
    }) as typeof whole.write;
    const surroundings = { variables: {}, caFiles: [] };
    const way = wayOut({ url: this.urls.ws, token: TOKEN, version: "test", surroundings });
    const duplex = await way.climb(whole, AbortSignal.timeout(10_000));
    duplex.on("error", () => undefined);
    this.#open.add(duplex);
    return duplex;
  }

  async register(scheme: RelayScheme, signer: Ed25519Signer, options: Partial<RegisterOptions> = {}): Promise<Registration> {
    const duplex = await this.dial(scheme);
    return await register(duplex, { relay: this.urls[scheme], token: TOKEN, signer, onJoining: () => undefined, ...options });
  }

  /** A worker that lets in whoever comes; `streams` are its ends of what is joined, in the order in which they came. */
  async worker(
    scheme: RelayScheme,
    signer = newSigner(),
  ): Promise<{ registration: Registration; streams: Duplex[]; signer: Ed25519Signer; seen: Joining[] }> {
    const streams: Duplex[] = [];
    const seen: Joining[] = [];
    const registration = await this.register(scheme, signer, {
      onJoining: (joining) => {
        seen.push(joining);
        void this.accept(scheme, signer, joining.ticket).then(
          (stream) => streams.push(stream),
          () => undefined,
        );
      },
    });
    return { registration, streams, signer, seen };
  }

  async accept(scheme: RelayScheme, signer: Ed25519Signer, ticket: Buffer): Promise<Duplex> {
    return await accept(await this.dial(scheme), { relay: this.urls[scheme], token: TOKEN, signer, ticket });
  }

  /** @param hostKey the worker's, whose room is wanted */
  async join(scheme: RelayScheme, hostKey: Buffer, options: Partial<JoinOptions> = {}): Promise<Duplex> {
    const duplex = await this.dial(scheme);
    return await join(duplex, {
      relay: this.urls[scheme],
      token: TOKEN,
      signer: newSigner(),
      room: roomOf(hostKey),
      waitMs: 0,
      ...options,
    });
  }

  /** What /metrics says. */
  async metrics(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.urls.ws.port}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
    return await answer.text();
  }
}

/** Everything that comes from a stream until it has so many bytes, or ends. */
export async function bytesOf(stream: Duplex, count = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    stream.on("data", (chunk: Buffer) => {
      chunks.push(Buffer.from(chunk));
      size += chunk.length;
      if (size >= count) resolve();
    });
    stream.on("end", resolve);
    stream.on("error", reject);
    stream.on("close", resolve);
    stream.resume();
  });
  stream.removeAllListeners("data");
  stream.pause();
  return Buffer.concat(chunks);
}
