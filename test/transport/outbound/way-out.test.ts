import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";
import { isRelayError, type RelayError } from "../../../src/domain/errors.ts";
import { parseRelayUrl } from "../../../src/domain/relay-url.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { type DialOutRequest, dialOut } from "../../../src/transport/dial.ts";
import { Ledger } from "../../../src/transport/ledger.ts";
import { WAY_OUT_TIMES } from "../../../src/transport/outbound/way-out.ts";
import { WebSocketStream } from "../../../src/transport/outbound/websocket/stream.ts";
import { acceptOf } from "../../../src/transport/outbound/websocket/upgrade.ts";
import { ConnectProxy } from "../../rigs/proxy/connect-proxy.ts";
import { component } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { type Authority, authority, type Certificate } from "./certificates.ts";

const TOKEN = "token-token-token-token-token-token";
const openssl = component("openssl");

interface Given {
  readonly url: string;
  readonly variables?: Record<string, string>;
  readonly ca?: readonly string[];
  readonly times?: Partial<typeof WAY_OUT_TIMES>;
  readonly signal?: AbortSignal;
  readonly addresses?: readonly string[];
  readonly token?: string | null;
}

const directory = temporaryDirectory();
let turn = 0;
function request({ url, variables = {}, ca = [], times = {}, signal, addresses, token = TOKEN }: Given): DialOutRequest {
  return {
    wayOut: {
      url: parseRelayUrl(url),
      token,
      version: "1",
      surroundings: { variables, caFiles: ca.map((file) => ({ from: "ca_file", path: file })) },
      times: { ...WAY_OUT_TIMES, ...times },
    },
    ledger: new Ledger(path.join(directory.path, `ledger-${turn++}.jsonl`), systemClock),
    dialing: { cluster: "one", purpose: "connect" },
    requestedBy: "test",
    signal: signal ?? new AbortController().signal,
    ...(addresses === undefined
      ? {}
      : { lookUp: () => Promise.resolve(addresses.map((address) => ({ address, family: net.isIP(address) }))) }),
  };
}

async function failureOf(one: DialOutRequest): Promise<RelayError> {
  const error: unknown = await dialOut(one).then(
    ({ duplex }) => duplex.destroy(),
    (caught: unknown) => caught,
  );
  if (isRelayError(error)) return error;
  throw new Error("no failure of ours", { cause: error });
}

const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port;

interface Serving {
  /** What it says in place of a WebSocket. */
  readonly answer?: string;
  readonly address?: string;
  /** Whether a WebSocket is the carrier; else the connection itself is. */
  readonly upgrades?: boolean;
}

/** A server that echoes what comes, and remembers what it was asked for a WebSocket. */
class Echo {
  readonly heads: string[] = [];
  readonly sockets = new Set<net.Socket>();

  constructor(
    readonly server: net.Server,
    readonly port: number,
    private readonly upgrades: boolean,
  ) {}

  static async start(certificate: Certificate | null, { answer, address = "127.0.0.1", upgrades = true }: Serving = {}): Promise<Echo> {
    const server =
      certificate === null
        ? net.createServer({ allowHalfOpen: true })
        : (tls.createServer({
            cert: fs.readFileSync(certificate.cert),
            key: fs.readFileSync(certificate.key),
            allowHalfOpen: true,
          }) as net.Server);
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    const echo = new Echo(server, portOf(server), upgrades);
    server.on(certificate === null ? "connection" : "secureConnection", (socket: net.Socket) => echo.#serve(socket, answer));
    return echo;
  }

  #serve(socket: net.Socket, answer: string | undefined): void {
    this.sockets.add(socket);
    socket.on("error", () => socket.destroy());
    if (!this.upgrades) return void socket.pipe(socket);
    let head = "";
    const onData = (chunk: Buffer): void => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", onData);
      socket.pause();
      this.heads.push(head);
      if (answer !== undefined) return void socket.end(answer);
      const key = /\r\nSec-WebSocket-Key: (.*)\r\n/.exec(head)![1]!;
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: clio-relay-meeting.v1\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
      );
      const stream = new WebSocketStream(socket, "server");
      stream.on("error", () => undefined);
      stream.pipe(stream);
    };
    socket.on("data", onData);
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** Send bytes through an echo and say whether all came back, whole and in order. */
async function echoes(one: DialOutRequest, bytes = 3_000_000): Promise<boolean> {
  const { duplex, line } = await dialOut(one);
  line.settle("open");
  const sent = createHash("sha256");
  const came = createHash("sha256");
  let left = bytes;
  const all = new Promise<void>((resolve, reject) => {
    duplex.on("data", (chunk: Buffer) => {
      came.update(chunk);
      left -= chunk.length;
      if (left === 0) resolve();
    });
    duplex.on("error", reject);
    duplex.on("close", () => reject(new Error(`closed, ${left} bytes before the end`)));
  });
  for (let at = 0; at < bytes; at += 200_000) {
    const chunk = Buffer.alloc(Math.min(200_000, bytes - at), at % 251);
    chunk.writeUInt32BE(at);
    sent.update(chunk);
    if (!duplex.write(chunk)) await new Promise((resolve) => duplex.once("drain", resolve));
  }
  await all;
  duplex.destroy();
  return came.digest("hex") === sent.digest("hex");
}

describe.if(openssl.available)("a way out", () => {
  let ca: Authority;
  let good: Certificate;
  let secure: Echo;
  let plain: Echo;
  let bareSecure: Echo;
  let bare: Echo;

  beforeAll(async () => {
    ca = authority(directory.path);
    good = ca.issue("good", "DNS:localhost,DNS:relay.example,IP:127.0.0.1,IP:::1");
    [secure, plain, bareSecure, bare] = await Promise.all([
      Echo.start(good),
      Echo.start(null),
      Echo.start(good, { upgrades: false }),
      Echo.start(null, { upgrades: false }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([secure, plain, bareSecure, bare].map((echo) => echo.stop()));
    directory[Symbol.dispose]();
  });

  test.each(["wss", "ws", "tls", "tcp"] as const)("%s carries bytes both ways, and the token only where TLS covers it", async (scheme) => {
    const echo = { wss: secure, ws: plain, tls: bareSecure, tcp: bare }[scheme];
    const prefix = scheme.startsWith("ws") ? "/some/where/" : "";
    const one = request({ url: `${scheme}://localhost:${echo.port}${prefix}`, ca: [ca.file] });
    expect(await echoes(one)).toBe(true);
    const head = echo.heads.at(-1) ?? "";
    if (scheme.startsWith("ws")) expect(head).toStartWith(`GET /some/where/meet HTTP/1.1\r\nHost: localhost:${echo.port}\r\n`);
    expect(head.includes(TOKEN)).toBe(scheme === "wss");
    expect(one.ledger.entries()).toMatchObject([
      {
        client: "relay",
        attended: false,
        outcome: "open",
        target: `${scheme}://localhost:${echo.port}${prefix.replace(/\/$/, "")}`,
        via: [],
      },
    ]);
    expect(JSON.stringify(one.ledger.entries())).not.toContain(TOKEN);
  });

  test("the name is sent, and an address is verified as one", async () => {
    const names: (string | false)[] = [];
    bareSecure.server.on("secureConnection", (socket: tls.TLSSocket & { servername?: string | false }) =>
      names.push(socket.servername ?? false),
    );
    expect(await echoes(request({ url: `tls://relay.example:${bareSecure.port}`, ca: [ca.file], addresses: ["127.0.0.1"] }), 1_000)).toBe(
      true,
    );
    expect(await echoes(request({ url: `tls://127.0.0.1:${bareSecure.port}`, ca: [ca.file] }), 1_000)).toBe(true);
    expect(names[0]).toBe("relay.example");
    const six = await Echo.start(good, { address: "::1" });
    expect(await echoes(request({ url: `wss://[::1]:${six.port}`, ca: [ca.file] }), 1_000)).toBe(true);
    expect(six.heads[0]).toContain(`\r\nHost: [::1]:${six.port}\r\n`);
    // Both families of one name, of which only the other is listened on.
    expect(await echoes(request({ url: `wss://relay.example:${six.port}`, ca: [ca.file], addresses: ["127.0.0.1", "::1"] }), 1_000)).toBe(
      true,
    );
    await six.stop();
  });

  test("files of authorities: the setting's, and those of the usual variables", async () => {
    const url = `tls://localhost:${secure.port}`;
    const missing = await failureOf(request({ url, ca: [path.join(directory.path, "none.pem")] }));
    expect(missing).toMatchObject({ code: "configuration_error", data: { setting: "ca_file" } });
    expect(missing.message).toContain("is not there");
    expect((await failureOf(request({ url, ca: [good.key] }))).message).toContain("has no certificate");
  });

  test("each thing that is wrong with a certificate is said, and the token does not go out", async () => {
    const wrong = [
      ["name", ca.issue("other", "DNS:other.example"), [ca.file]],
      ["expired", ca.issue("old", "DNS:localhost", -1), [ca.file]],
      ["unknown_issuer", good, []],
    ] as const;
    for (const [certificate, served, files] of wrong) {
      const echo = await Echo.start(served);
      const error = await failureOf(request({ url: `wss://localhost:${echo.port}`, ca: files }));
      expect(error).toMatchObject({ code: "certificate_refused", data: { layer: "tls", certificate } });
      expect(error.hint).toBeDefined();
      expect(echo.heads).toEqual([]);
      await echo.stop();
    }
  });

  test("what is no TLS, what closes, what is silent, and who gives up: of the layer where it happened", async () => {
    const silent = net.createServer((socket) => socket.on("error", () => undefined).resume());
    const closing = net.createServer((socket) => socket.on("error", () => undefined).destroy());
    await Promise.all([silent, closing].map((server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))));
    const times = { proxy: 200, tls: 200, upgrade: 200 };
    const at = (url: string, more: Partial<Given> = {}) => failureOf(request({ url, ca: [ca.file], times, ...more }));
    expect(await at(`tls://localhost:${plain.port}`)).toMatchObject({ code: "tls_failed", data: { layer: "tls" } });
    expect(await at(`tls://localhost:${portOf(closing)}`)).toMatchObject({ code: "tls_failed", data: { layer: "tls" } });
    expect(await at(`tls://localhost:${portOf(silent)}`)).toMatchObject({ code: "tls_failed", data: { layer: "tls" } });
    expect(await at(`ws://localhost:${portOf(silent)}`)).toMatchObject({ code: "upgrade_refused", data: { layer: "http_upgrade" } });
    expect(await at(`ws://localhost:${portOf(closing)}`)).toMatchObject({ code: "upgrade_refused", data: { layer: "http_upgrade" } });
    const viaSilent = { HTTP_PROXY: `http://127.0.0.1:${portOf(silent)}` };
    expect(await at("ws://relay.example", { variables: viaSilent })).toMatchObject({ code: "proxy_failed", data: { layer: "proxy" } });
    const dead = portOf(closing);
    await new Promise((resolve) => closing.close(resolve));
    expect(await at(`tcp://localhost:${dead}`)).toMatchObject({ code: "host_unreachable", data: { layer: "tcp" } });
    expect(await at("ws://relay.example", { variables: { http_proxy: `127.0.0.1:${dead}` } })).toMatchObject({
      code: "proxy_failed",
      data: { layer: "proxy" },
    });
    expect(await at("tcp://no-such-name.invalid")).toMatchObject({ code: "host_unreachable", data: { layer: "dns" } });
    const gone = new AbortController();
    const given = request({ url: `ws://localhost:${portOf(silent)}`, signal: gone.signal });
    const dialing = dialOut(given);
    gone.abort(new Error("gone"));
    expect(await dialing.catch((error: unknown) => error)).toMatchObject({ message: "gone" });
    expect(given.ledger.entries()).toMatchObject([{ outcome: "cancelled" }]);
    silent.close();
  });

  test.each<[what: string, answer: string, expected: object]>([
    [
      "a wrong token",
      "HTTP/1.1 401 Unauthorized\r\n\r\n",
      { code: "relay_token_refused", data: { layer: "http_upgrade", status: 401, retry_ms: 60_000 } },
    ],
    [
      "too many",
      "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\n\r\n",
      { code: "relay_host_busy", data: { status: 429, retry_after: 7, retry_ms: 7_000 } },
    ],
    ["too long", "HTTP/1.1 429 Too Many\r\nRetry-After: 86400\r\n\r\n", { code: "relay_host_busy", data: { retry_ms: 60_000 } }],
    ["not now", "HTTP/1.1 503 No\r\nRetry-After: soon\r\n\r\n", { code: "shutting_down", data: { layer: "http_upgrade", status: 503 } }],
    [
      "a detour",
      "HTTP/1.1 302 Found\r\nLocation: https://login.example/?secret=1\r\n\r\n",
      { code: "upgrade_refused", data: { status: 302 } },
    ],
    ["a page", "HTTP/1.1 200 OK\r\n\r\n<html>", { code: "upgrade_refused", data: { status: 200 } }],
    [
      "another protocol",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
      { code: "upgrade_refused" },
    ],
    ["another server", "SSH-2.0-OpenSSH\r\n\r\n", { code: "upgrade_refused", data: { layer: "http_upgrade" } }],
    ["a head without end", `HTTP/1.1 101 Switching\r\nX: ${"x".repeat(20_000)}`, { code: "upgrade_refused" }],
  ])("an answer that is no upgrade: %s", async (_what, answer, expected) => {
    const echo = await Echo.start(null, { answer });
    const error = await failureOf(request({ url: `ws://127.0.0.1:${echo.port}` }));
    expect(error).toMatchObject(expected);
    expect(error.message).not.toContain("secret");
    await echo.stop();
  });

  test("a proxy with a name and a password is asked for a tunnel, over TLS too, and neither error nor ledger has them", async () => {
    const cert = { cert: fs.readFileSync(good.cert, "utf8"), key: fs.readFileSync(good.key, "utf8") };
    await using open = await ConnectProxy.start({ credentials: "me:p@ss:word", resolve: () => ({ host: "127.0.0.1", port: secure.port }) });
    await using covered = await ConnectProxy.start({
      credentials: "me:x",
      tls: cert,
      resolve: () => ({ host: "127.0.0.1", port: secure.port }),
    });
    const url = "wss://relay.example:7443";
    const ways = [`http://me:p%40ss%3Aword@127.0.0.1:${open.port}`, `https://me:x@localhost:${covered.port}/`];
    for (const HTTPS_PROXY of ways) {
      const one = request({ url, ca: [ca.file], variables: { HTTPS_PROXY } });
      expect(await echoes(one, 300_000)).toBe(true);
      expect(one.ledger.entries()).toMatchObject([{ target: url, via: [HTTPS_PROXY.replace(/me:.*@/, "").replace(/\/$/, "")] }]);
    }
    for (const { asked } of [open, covered]) {
      expect(asked).toEqual([{ target: "relay.example:7443", authorization: expect.stringMatching(/^Basic /) }]);
    }
    const wrong = request({ url, ca: [ca.file], variables: { HTTPS_PROXY: `http://me:wrong-word@127.0.0.1:${open.port}` } });
    const error = await failureOf(wrong);
    expect(error).toMatchObject({ code: "proxy_failed", data: { layer: "proxy", status: 407 } });
    expect(error.message).toContain("does not take the user and password");
    expect(JSON.stringify([error.message, error.data, error.hint, wrong.ledger.entries()])).not.toMatch(/wrong-word|me:/);
    const unknown = await failureOf(request({ url, variables: { HTTPS_PROXY: `https://localhost:${covered.port}` } }));
    expect(unknown).toMatchObject({ code: "certificate_refused", data: { layer: "proxy", certificate: "unknown_issuer" } });
  });

  test.each([
    ["HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n\r\n", 407, "Negotiate"],
    ["HTTP/1.0 403 Forbidden\r\n\r\n", 403, "status 403"],
    ["220 smtp\r\n\r\n", undefined, "status line"],
    ["", undefined, "without an answer"],
  ])("what a proxy says instead: %j, of status %s", async (answer, status, said) => {
    await using proxy = await ConnectProxy.start({ answer });
    const error = await failureOf(request({ url: "wss://relay.example", variables: { ALL_PROXY: `127.0.0.1:${proxy.port}` } }));
    expect(error).toMatchObject({ code: "proxy_failed", data: { layer: "proxy" } });
    expect(error.data["status"]).toBe(status);
    expect(error.message).toContain(said);
  });
});
