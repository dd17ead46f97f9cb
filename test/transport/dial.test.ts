import { expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { RelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { type DialRequest, dial } from "../../src/transport/dial.ts";
import { Ledger } from "../../src/transport/ledger.ts";
import { ProcessStream, withoutCredentials } from "../../src/transport/process-stream.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const directory = temporaryDirectories();
const never = new AbortController().signal;

function request(port: number, more: Partial<Extract<DialRequest["destination"], { kind: "tcp" }>> = {}): DialRequest {
  return {
    destination: { kind: "tcp", host: "localhost", port, family: "any", bindAddress: null, timeoutMs: 5_000, ...more },
    attending: { requestedBy: "test", signal: never },
    ledger: new Ledger(path.join(directory(), "ledger.jsonl"), systemClock),
    dialing: { cluster: "one", purpose: "connect", target: "me@localhost", via: [], client: "builtin" },
  };
}

async function refused(one: DialRequest): Promise<RelayError> {
  const error: unknown = await dial(one).catch((caught: unknown) => caught);
  if (error instanceof RelayError) return error;
  throw error;
}

const listen = (address: string, onConnection: (socket: net.Socket) => void = () => undefined) =>
  new Promise<net.Server>((resolve) => {
    const server = net.createServer(onConnection);
    server.listen(0, address, () => resolve(server));
  });
const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port;

test.each(["127.0.0.1", "::1"])("finds the address of a name that somebody listens on: %s", async (address) => {
  const all = ["::1", "127.0.0.3", "127.0.0.2", "127.0.0.1"].map((one) => ({ address: one, family: net.isIP(one) }));
  const seen: string[] = [];
  const server = await listen(address, (socket) => {
    seen.push(socket.remoteAddress ?? "");
    socket.end("hello");
  });
  const one = request(portOf(server), { host: "login", lookUp: () => Promise.resolve(all) });
  const { duplex, line } = await dial(one);
  const chunks: Buffer[] = [];
  for await (const chunk of duplex) chunks.push(chunk as Buffer);
  expect(Buffer.concat(chunks).toString()).toBe("hello");
  expect(seen).toHaveLength(1);
  expect(one.ledger.entries()).toMatchObject([{ seq: line.seq, outcome: null }]);
  server.close();
});

test("BindAddress is where it goes out from, AddressFamily what is tried", async () => {
  const seen: string[] = [];
  const server = await listen("127.0.0.1", (socket) => {
    seen.push(socket.remoteAddress ?? "");
    socket.destroy();
  });
  const { duplex } = await dial(request(portOf(server), { host: "127.0.0.1", bindAddress: "127.0.0.9" }));
  duplex.destroy();
  await eventually(() => seen.length > 0, { what: "the connection" });
  expect(seen).toEqual(["127.0.0.9"]);
  for (const more of [
    { host: "127.0.0.1", family: "inet6" },
    { host: "localhost", family: "inet6" },
  ] as const) {
    expect((await refused(request(portOf(server), more))).code).toBe("host_unreachable");
  }
  expect(seen).toHaveLength(1);
  server.close();
});

test("a port that nobody listens on, a name that nobody has, and one that does not answer", async () => {
  const server = await listen("127.0.0.1");
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  const closed = request(port, { host: "127.0.0.1" });
  const error = await refused(closed);
  expect(error.code).toBe("host_unreachable");
  expect(error.message).toContain("127.0.0.1: ECONNREFUSED");
  expect(closed.ledger.entries()).toMatchObject([{ outcome: "failed", reason: "host_unreachable" }]);
  expect((await refused(request(22, { host: "no-such-host.invalid" }))).code).toBe("host_unreachable");
  // RFC 5737: an address that is nobody's.
  expect((await refused(request(22, { host: "192.0.2.1", timeoutMs: 200 }))).code).toBe("host_unreachable");
});

test("nothing is dialed without somebody who asks, nor when they have gone", async () => {
  const gone = new AbortController();
  gone.abort(new Error("gone"));
  for (const attending of [null, { requestedBy: "test", signal: gone.signal }]) {
    const one = { ...request(1), attending };
    expect((await refused(one)).code).toBe("authorization_required");
    expect(one.ledger.entries()).toEqual([]);
  }
});

test("a dial is given up with its request", async () => {
  const controller = new AbortController();
  const one = { ...request(22, { host: "192.0.2.1" }), attending: { requestedBy: "test", signal: controller.signal } };
  const outcome = dial(one).catch((error: Error) => error.message);
  controller.abort(new Error("gone"));
  expect(await outcome).toBe("gone");
  expect(one.ledger.entries()).toMatchObject([{ outcome: "cancelled" }]);
});

const running = (mark: string): boolean => Bun.spawnSync(["pgrep", "-f", mark]).exitCode === 0;

test("a process is a stream in both directions, and says how it ended", async () => {
  const stream = new ProcessStream({
    argv: ["/bin/sh", "-c", "tr a-z A-Z; echo done >&2; exit 5"],
    env: { PATH: "/usr/bin:/bin" },
    directory: "/",
  });
  const big = "abc".repeat(200_000);
  stream.end(big);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  expect(Buffer.concat(chunks).toString()).toBe(big.toUpperCase());
  expect(await stream.ended).toEqual({ code: 5, signal: null, stderr: "done\n" });
});

test("its process group ends with it, also what does not listen", async () => {
  const mark = `4242.${process.pid}`;
  const script = `trap '' TERM; sleep ${mark} & echo up; wait; wait`;
  const stream = new ProcessStream({ argv: ["/bin/sh", "-c", script], env: { PATH: "/usr/bin:/bin" }, directory: "/" });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("data", resolve));
  expect(running(`sleep ${mark}`)).toBe(true);
  stream.destroy();
  await stream.ended;
  await eventually(() => !running(`sleep ${mark}`), { what: "the end of the group" });
});

test("a program that is not there ends at once, with a reason", async () => {
  const stream = new ProcessStream({ argv: ["/no/such/program"], env: {}, directory: "/" });
  stream.on("error", () => undefined);
  expect(await stream.ended).toMatchObject({ code: null, signal: null, stderr: expect.stringContaining("ENOENT") });
});

test("no credential of the relay reaches a program of the user's", () => {
  const variables = {
    HOME: "/h",
    CLIO_RELAY_API_TOKEN: "t",
    CLIO_RELAY_STCP_SECRET: "s",
    CLIO_RELAY_TOKEN: "u",
    CLIO_RELAY_HOME: "/r",
    NONE: undefined,
  };
  expect(withoutCredentials(variables)).toEqual({ HOME: "/h", CLIO_RELAY_HOME: "/r" });
});
