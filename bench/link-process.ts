/**
 * A desktop's part of a link by itself: brings it up as its argument says, and serves the worker on a local socket. Prints `up` with the bring-ups that it
 * made, in milliseconds.
 */
import fs from "node:fs";
import net from "node:net";
import type { Duplex } from "node:stream";
import { parseRelayUrl } from "../src/domain/relay-url.ts";
import { givingBack } from "../src/roles/desktop/giving-back.ts";
import { Link } from "../src/transport/link.ts";
import { join } from "../src/transport/meeting/join.ts";
import { roomOf } from "../src/transport/meeting/proof.ts";
import { wayOut } from "../src/transport/outbound/way-out.ts";
import type { ClientSession } from "../src/transport/session/client-channels.ts";
import { type ClientSessionOptions, openClientSession } from "../src/transport/session/client-session.ts";
import { publicKeyFromLine } from "../src/transport/session/keys.ts";
import { signerOf } from "../src/transport/session/signer.ts";

/** How the process is to reach the worker. */
export interface LinkProcessOptions {
  /** Of an sshd or a frpc, the worker's link socket, or the relay-host where the worker waits. */
  readonly to:
    | { readonly port: number }
    | { readonly path: string }
    | { readonly relay: string; readonly token: string; readonly caFile: string };
  readonly user: string;
  readonly algorithms: "own" | "site";
  /** Line of the host's public key. */
  readonly hostKey: string;
  readonly keyFile: string;
  /** The worker's socket there, and ours here. */
  readonly remote: string;
  readonly local: string;
  readonly bringUps: number;
}

async function connect(where: net.NetConnectOpts): Promise<net.Socket> {
  const socket = net.connect(where);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}

async function dial({ to }: LinkProcessOptions, key: string, hostKey: Buffer, signal: AbortSignal): Promise<Duplex> {
  if ("path" in to) return connect(to);
  if ("port" in to) return connect({ ...to, host: "127.0.0.1", noDelay: true });
  const relay = parseRelayUrl(to.relay);
  const surroundings = { variables: {}, caFiles: [{ from: "the benchmark", path: to.caFile }] };
  const socket = await connect({ host: relay.host, port: relay.port, noDelay: true });
  const duplex = await wayOut({ url: relay, token: to.token, version: "bench", surroundings }).climb(socket, signal);
  return join(duplex, { relay, token: to.token, signer: signerOf(key), room: roomOf(hostKey), waitMs: 10_000 });
}

/** As a bring-up does, which looks for the worker: an sshd of OpenSSH sends small packets at once (TCP_NODELAY) from the first command of a connection on, and not before. */
async function runOnce(session: ClientSession): Promise<void> {
  const command = await session.exec("true");
  command.stream.resume();
  command.stderr.resume();
  if ((await command.exited).code !== 0) throw new Error("the host did not run a command");
}

async function main(options: LinkProcessOptions): Promise<void> {
  const key = fs.readFileSync(options.keyFile, "utf8");
  const hostKey = publicKeyFromLine(options.hostKey);
  const link = new Link({ cluster: "local", version: "bench", afterDrop: "authorization_required" });
  let last: ClientSession | null = null;
  const bringUp = async (signal: AbortSignal) => {
    const duplex = await dial(options, key, hostKey, signal);
    const identity: ClientSessionOptions = {
      user: options.user,
      algorithms: options.algorithms,
      verifyHostKey: (found) => found.equals(hostKey),
      authenticate: () => ({ method: "publickey", key }),
      signal,
    };
    const session = await openClientSession(duplex, identity);
    last = session;
    return { session, open: (one?: AbortSignal) => session.openSocket(options.remote, one) };
  };
  const times: number[] = [];
  for (let i = 0; i < options.bringUps; i++) {
    if (i > 0) await link.disconnect();
    const began = performance.now();
    await link.connect(bringUp, { cluster: "local" });
    times.push(performance.now() - began);
  }
  if (options.algorithms === "site") await runOnce(last!);
  Bun.serve({
    unix: options.local,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request: Request) {
      const target = request.url.slice(request.url.indexOf("/", 8));
      const asked = { method: request.method, target, headers: request.headers, body: request.body };
      const { status, headers, body } = await link.request(asked, { signal: request.signal, bulk: target.endsWith("/content") });
      // As the desktop daemon does it.
      const content = body instanceof ReadableStream ? givingBack(body, () => undefined) : body;
      return new Response(content as Blob | null, { status, headers });
    },
  } as unknown as Bun.Serve.Options<undefined>);
  console.log(`up ${JSON.stringify(times)}`);
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as LinkProcessOptions);
