import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { problemResponse } from "../../../src/api/problem.ts";
import { type SocketServer, serveOnSocket } from "../../../src/api/socket-server.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { Front, type FrontBounds, type FrontOptions } from "../../../src/roles/desktop/front.ts";
import { listen } from "../../api/web-socket-client.ts";
import { initialized, MAIN } from "../../cli/source-relay.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

const directory = temporaryDirectories();
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const TOKEN = "t0ken";
const BLOCK = Buffer.alloc(64 * 1024, "clio ");
const BLOCKS = 512;
const STREAM = "id: 1\nevent: step\ndata: 1\n\nid: 1\nevent: terminal\ndata: {}\n\n";

const refused = (request: Request): Response => Response.json({ open: new URL(request.url).pathname }, { status: 401 });
const faults: Error[] = [];
afterEach(() => expect(faults.splice(0)).toEqual([]));

interface Behind {
  readonly front: Front;
  readonly server: SocketServer;
  /** Requests that the server's client gave up. */
  readonly aborted: string[];
  /** How many blocks were asked of it. */
  given(): number;
}

interface Limits extends Partial<Pick<FrontOptions, "answer" | "onRefused" | "clock">> {
  readonly bounds?: Partial<FrontBounds>;
  readonly unprovenMs?: number;
  readonly maxUnproven?: number;
}

/** Time that goes on when the test says so. */
const stillClock = () => {
  const clock = { at: 0, now: () => clock.at, monotonic: () => clock.at };
  return clock;
};

async function behind(limits: Limits = {}): Promise<Behind> {
  const { answer = refused, onRefused, clock = systemClock, unprovenMs = 10_000, maxUnproven = 64, bounds } = limits;
  const socket = path.join(directory(), "front.sock");
  const aborted: string[] = [];
  let given = 0;
  const app = new Hono();
  app.get("/owner", (c) => c.text("served"));
  app.post("/echo", (c) => new Response(c.req.raw.body));
  app.get("/blocks", () => {
    return new Response(new ReadableStream({ pull: (out) => (given++ < BLOCKS ? out.enqueue(new Uint8Array(BLOCK)) : out.close()) }));
  });
  app.get("/events/sse", () => new Response(STREAM, { headers: { "content-type": "text/event-stream" } }));
  app.get("/stream", (c) => {
    c.req.raw.signal.addEventListener("abort", () => aborted.push("/stream"));
    return new Response(new ReadableStream({ start: (out) => out.enqueue(Buffer.from("first\n")) }));
  });
  const server = serveOnSocket(app, socket);
  const front = new Front({
    address: { host: "127.0.0.1", port: 0 },
    tls: null,
    socket,
    token: () => TOKEN,
    answer,
    clock,
    bounds: { strangers: { all: maxUnproven, perAddress: maxUnproven }, strangerMs: unprovenMs, ...bounds },
    ...(onRefused === undefined ? {} : { onRefused }),
    onFault: (error) => faults.push(error),
  });
  ending.push(async () => {
    front.close();
    await server.stop(0);
    await front.drain(0);
  });
  return { front, server, aborted, given: () => Math.min(given, BLOCKS) };
}

/** Resolves to a count once it has begun and does not go on. */
function standing(count: () => number): Promise<number> {
  let last = 0;
  const look = (): number | null => {
    const before = last;
    last = count();
    return last > 0 && last === before ? last : null;
  };
  return eventually(look, { everyMs: 200 });
}

interface Raw {
  readonly socket: net.Socket;
  text(): string;
  readonly closed: Promise<void>;
  isClosed(): boolean;
}

async function connect(port: number, first = ""): Promise<Raw> {
  const chunks: Buffer[] = [];
  const socket = net.connect(port, "127.0.0.1");
  ending.push(() => socket.destroy());
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => undefined);
  let isClosed = false;
  const closed = new Promise<void>((resolve) =>
    socket.once("close", () => {
      isClosed = true;
      resolve();
    }),
  );
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  if (first !== "") socket.write(first);
  return { socket, text: () => Buffer.concat(chunks).toString("latin1"), closed, isClosed: () => isClosed };
}

const head = (line: string, ...fields: string[]): string => [line, "Host: 127.0.0.1", ...fields, "", ""].join("\r\n");
const BEARER = `Authorization: Bearer ${TOKEN}`;
const HALF_HEAD = "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le";
const HALF_BODY = `${head("POST /echo HTTP/1.1", "Content-Length: 100")}{`;

describe("a connection without the token", () => {
  test.each([
    ["says nothing", ""],
    ["sends half a head", HALF_HEAD],
    ["sends half a body, and keeps the answer waiting", HALF_BODY],
    ["wants to be kept", head("GET /open HTTP/1.1", "Connection: keep-alive")],
  ])("that %s ends with its time", async (_, first) => {
    const { front } = await behind({ unprovenMs: 200 });
    const { closed } = await connect(front.address.port, first);
    await closed;
    await eventually(() => front.connections.unproven === 0);
    expect(front.connections).toEqual({ unproven: 0, proven: 0 });
  });

  test("gains no time by sending on", async () => {
    const { front } = await behind({ unprovenMs: 300 });
    const raw = await connect(front.address.port, "GET / HTTP/1.1\r\n");
    const dripping = setInterval(() => raw.socket.write("A: b\r\n"), 20);
    ending.push(() => clearInterval(dripping));
    await raw.closed;
    await eventually(() => front.connections.unproven === 0);
    expect(front.connections).toEqual({ unproven: 0, proven: 0 });
  });

  test("is answered once, whatever it still wants to send, and told that this was all", async () => {
    const { front } = await behind();
    const raw = await connect(front.address.port, head("POST /echo HTTP/1.1", "Content-Length: 4000000"));
    for (let n = 0; n < 50 && !raw.isClosed(); n++) raw.socket.write(Buffer.alloc(20_000, "x"));
    await eventually(() => raw.text().endsWith('{"open":"/echo"}'));
    expect(raw.text()).toStartWith("HTTP/1.1 401 ");
    expect(raw.text()).toContain("connection: close");
    expect(raw.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("finds its place taken by the next one when there are too many; the owner's stay", async () => {
    const { front } = await behind({ maxUnproven: 3 });
    const stream = await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER));
    await eventually(() => stream.text().includes("first\n"));
    const strangers: Raw[] = [];
    for (let n = 0; n < 10; n++) strangers.push(await connect(front.address.port, HALF_HEAD));
    await eventually(() => strangers.filter((raw) => raw.isClosed()).length === 7);
    expect(strangers.slice(-3).some((raw) => raw.isClosed())).toBe(false);
    expect(front.connections).toEqual({ unproven: 3, proven: 1 });
    expect(stream.isClosed()).toBe(false);
  });

  test.each([
    ["no request", "hello\r\n\r\n"],
    ["another version", head("GET /owner HTTP/1.0", BEARER)],
    ["a whole address", head("GET http://elsewhere/owner HTTP/1.1", BEARER)],
    ["a folded field", head("GET /owner HTTP/1.1", BEARER, " more")],
    ["a space before the colon", head("GET /owner HTTP/1.1", `Authorization : Bearer ${TOKEN}`)],
    ["no host", `GET /owner HTTP/1.1\r\n${BEARER}\r\n\r\n`],
    ["two ends of its body", head("POST /echo HTTP/1.1", BEARER, "Content-Length: 3", "Transfer-Encoding: chunked")],
    ["two lengths", head("POST /echo HTTP/1.1", BEARER, "Content-Length: 3", "Content-Length: 4")],
    ["a length that is none", head("POST /echo HTTP/1.1", BEARER, "Content-Length: +3")],
    ["a length that nobody can count", head("POST /echo HTTP/1.1", BEARER, "Content-Length: 99999999999999999999")],
    ["a coding that is not known", head("POST /echo HTTP/1.1", BEARER, "Transfer-Encoding: gzip, chunked")],
  ])("with %s is refused", async (_, first) => {
    const { front } = await behind();
    const raw = await connect(front.address.port, first);
    await eventually(() => raw.text().includes("\r\n\r\n"));
    expect(raw.text()).toStartWith("HTTP/1.1 400 ");
    expect(raw.text()).toContain("http_request_malformed");
    expect(front.connections.proven).toBe(0);
  });

  test.each([
    ["two tokens", [BEARER, "Authorization: Bearer other"]],
    ["another token", ["Authorization: Bearer other"]],
    ["another scheme", [`Authorization: Basic ${TOKEN}`]],
  ])("with %s never comes to the server", async (_, fields) => {
    const { front } = await behind();
    const raw = await connect(front.address.port, head("GET /owner HTTP/1.1", ...fields));
    await eventually(() => raw.text().includes("/owner"));
    expect(raw.text()).toStartWith("HTTP/1.1 401 ");
    expect(front.connections.proven).toBe(0);
  });
});

describe("a WebSocket", () => {
  async function streaming() {
    const all = await behind({ answer: () => problemResponse(new RelayError("authentication_required", "no")) });
    return { front: all.front, url: (target: string) => `ws://127.0.0.1:${all.front.address.port}${target}` };
  }

  test.each([
    ["as a parameter", `?token=${TOKEN}`, {}],
    ["as a parameter among others", `?cursor=1&token=${TOKEN}`, {}],
    ["in the header", "", { authorization: `Bearer ${TOKEN}` }],
    ["in the header, whatever the parameter is", "?token=other", { authorization: `Bearer ${TOKEN}` }],
  ])("with the token %s passes", async (_, query, headers) => {
    const { url } = await streaming();
    expect(await listen(url(`/events/ws${query}`), { headers })).toMatchObject({
      messages: [{ data: 1 }, { event: "terminal" }],
      code: 1000,
      reason: "terminal",
    });
  });

  test.each([
    ["no token", "", {}],
    ["another token", "?token=other", {}],
    ["another one in the header, whatever the parameter is", `?token=${TOKEN}`, { authorization: "Bearer other" }],
    ["a token that is no text", "?token=%00%0d%0a", {}],
  ])("with %s is closed with the reason, and never comes to the server", async (_, query, headers) => {
    const { url, front } = await streaming();
    expect(await listen(url(`/events/ws${query}`), { headers })).toEqual({ messages: [], code: 1008, reason: "authentication_required" });
    expect(front.connections.proven).toBe(0);
  });

  test("is the only thing that a parameter lets in", async () => {
    const { front } = await streaming();
    for (const target of [`/owner?token=${TOKEN}`, `/events/ws?token=${TOKEN}`]) {
      const response = await fetch(`http://127.0.0.1:${front.address.port}${target}`);
      expect([target, response.status]).toEqual([target, 401]);
    }
  });
});

describe("a connection with the token", () => {
  test("has all the time it wants, its head in pieces or not", async () => {
    const { front } = await behind({ unprovenMs: 2_000 });
    const raw = await connect(front.address.port);
    for (const byte of head("GET /stream HTTP/1.1", BEARER)) raw.socket.write(byte);
    await eventually(() => raw.text().includes("first\n"));
    // A stranger that came later is gone already.
    await (await connect(front.address.port, HALF_HEAD)).closed;
    await eventually(() => front.connections.unproven === 0);
    expect(raw.isClosed()).toBe(false);
    expect(front.connections).toEqual({ unproven: 0, proven: 1 });
  });

  test("is kept for more requests, and carries what is large both ways", async () => {
    const { front } = await behind();
    const url = `http://127.0.0.1:${front.address.port}`;
    const headers = { authorization: `Bearer ${TOKEN}` };
    for (let n = 0; n < 3; n++) expect(await (await fetch(`${url}/owner`, { headers })).text()).toBe("served");
    expect(front.connections.proven).toBe(1);
    const sent = Buffer.alloc(8 << 20, "0123456789abcdef-");
    const back = await fetch(`${url}/echo`, { method: "POST", headers, body: sent });
    expect(Bun.SHA256.hash(await back.bytes(), "hex")).toBe(Bun.SHA256.hash(sent, "hex"));
  });

  test("whose reader does not read holds the server back", async () => {
    const { front, given } = await behind();
    const raw = await connect(front.address.port);
    raw.socket.pause();
    raw.socket.write(head("GET /blocks HTTP/1.1", BEARER, "Connection: close"));
    expect(await standing(given)).toBeLessThan(BLOCKS);
    raw.socket.resume();
    await raw.closed;
    expect(given()).toBe(BLOCKS);
    expect(raw.text().split("clio ").length - 1).toBeGreaterThan(BLOCKS * 13_000);
  });

  test("that goes away ends its request; so does the server's end end the connection", async () => {
    const { front, server, aborted } = await behind();
    const [leaving, staying] = [
      await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)),
      await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)),
    ];
    for (const raw of [leaving, staying]) await eventually(() => raw.text().includes("first\n"));
    leaving.socket.destroy();
    await eventually(() => aborted.length === 1);
    await server.stop(0);
    await staying.closed;
    await eventually(() => front.connections.proven === 0);
    expect(aborted.length).toBeGreaterThan(0);
  });
});

describe("bounds", () => {
  test("a head without end is too large", async () => {
    const { front } = await behind();
    const raw = await connect(front.address.port, `GET /owner HTTP/1.1\r\nA: ${"x".repeat(17 * 1024)}`);
    await raw.closed;
    expect(raw.text()).toStartWith("HTTP/1.1 431 ");
    expect(raw.text()).toContain("request_head_too_large");
  });

  test("whoever does not come to the end of a head is told that its time is over", async () => {
    const { front } = await behind({ unprovenMs: 100 });
    const raw = await connect(front.address.port, HALF_HEAD);
    await raw.closed;
    expect(raw.text()).toStartWith("HTTP/1.1 408 ");
    expect(raw.text()).toContain("request_timeout");
  });

  test("wrong tokens are answered so many times a minute, and never keep the right one out", async () => {
    const why: string[] = [];
    const { front } = await behind({ bounds: { failuresPerMinute: 3 }, onRefused: (reason) => why.push(reason) });
    const statuses: number[] = [];
    const ask = (token: string) => fetch(`http://127.0.0.1:${front.address.port}/owner`, { headers: { authorization: `Bearer ${token}` } });
    for (let n = 0; n < 6; n++) {
      const answer = await ask("guess");
      statuses.push(answer.status);
      if (answer.status !== 429) continue;
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await answer.json()).toMatchObject({ reason: "listener_busy", retryable: true });
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429, 429]);
    expect(why).toEqual([...new Array<string>(3).fill("authentication"), ...new Array<string>(3).fill("rate")]);
    expect(await (await ask(TOKEN)).text()).toBe("served");
  });

  test("as many connections as there may be: one more is refused, unless one has long been silent", async () => {
    const clock = stillClock();
    const { front } = await behind({ clock, bounds: { proven: 2, idleMs: 300 } });
    const [silent, busy] = [
      await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)),
      await connect(front.address.port, head("GET /blocks HTTP/1.1", BEARER)),
    ];
    for (const raw of [silent, busy]) await eventually(() => raw.text().includes("HTTP/1.1 200 "));
    const early = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await early.closed;
    expect(early.text()).toStartWith("HTTP/1.1 429 ");
    clock.at += 300;
    const late = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => late.text().includes("\r\n\r\n"));
    expect(late.text()).toStartWith("HTTP/1.1 200 ");
    await eventually(() => silent.isClosed() || busy.isClosed());
    expect(front.connections.proven).toBeLessThanOrEqual(2);
  });

  test("a reader that does not read ends some time later, and one that reads slowly does not", async () => {
    const clock = stillClock();
    const { front, given } = await behind({ clock, bounds: { stalledMs: 2_000 } });
    const [deaf, slow] = [await connect(front.address.port), await connect(front.address.port)];
    for (const raw of [deaf, slow]) {
      raw.socket.pause();
      raw.socket.write(head("GET /blocks HTTP/1.1", BEARER, "Connection: close"));
    }
    await standing(given);
    // Time goes on with what is read, up to a part of it; what the kernel may hold is little beside that.
    slow.socket.on("data", (chunk: Buffer) => {
      clock.at += (5_000 * chunk.length) / (BLOCKS * BLOCK.length);
      slow.socket.pause();
    });
    const reading = setInterval(() => clock.at < 3_000 && slow.socket.resume(), 10);
    ending.push(() => clearInterval(reading));
    await eventually(() => front.connections.proven === 2);
    await eventually(() => front.connections.proven < 2);
    expect([front.connections.proven, slow.isClosed()]).toEqual([1, false]);
    clearInterval(reading);
    slow.socket.removeAllListeners("data");
    const rest: Buffer[] = [];
    slow.socket.on("data", (chunk: Buffer) => rest.push(chunk));
    slow.socket.resume();
    await slow.closed;
    // The end of what comes in chunks.
    expect(Buffer.concat(rest).toString("latin1")).toEndWith("\r\n0\r\n\r\n");
  });

  test("many that come at once with the token are all let in, whoever is read first", async () => {
    const { front } = await behind({ bounds: { strangers: { all: 4, perAddress: 4, atOnce: 8 } } });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const url = `http://127.0.0.1:${front.address.port}/owner`;
    const answers = await Promise.all(Array.from({ length: 24 }, () => fetch(url, { headers, keepalive: false } as RequestInit)));
    expect(answers.map(({ status }) => status)).toEqual(new Array<number>(24).fill(200));
    const strangers: Raw[] = [];
    for (let n = 0; n < 40; n++) strangers.push(await connect(front.address.port, HALF_HEAD));
    expect(front.connections.unproven).toBeLessThanOrEqual(32);
    await eventually(() => front.connections.unproven <= 4);
    await eventually(() => strangers.filter((raw) => raw.isClosed()).length === 36);
    expect(strangers.slice(-4).some((raw) => raw.isClosed())).toBe(false);
  });

  test("who has said that it was all still gets the answer, and is not kept for longer", async () => {
    const patient = await behind({ bounds: { halfClosedMs: 30_000 } });
    const asking = net.connect({ port: patient.front.address.port, host: "127.0.0.1", allowHalfOpen: true });
    ending.push(() => asking.destroy());
    const chunks: Buffer[] = [];
    asking.on("data", (chunk: Buffer) => chunks.push(chunk));
    asking.end(head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => Buffer.concat(chunks).toString().endsWith("served"));
    const { front, aborted } = await behind({ bounds: { halfClosedMs: 100 } });
    const following = net.connect({ port: front.address.port, host: "127.0.0.1", allowHalfOpen: true });
    ending.push(() => following.destroy());
    following.on("data", () => undefined);
    following.on("error", () => undefined);
    following.end(head("GET /stream HTTP/1.1", BEARER));
    await eventually(() => aborted.includes("/stream"));
    await eventually(() => front.connections.proven === 0);
    expect(front.connections.proven).toBe(0);
  });

  test("who has had the answer and leaves is gone at once", async () => {
    const { front, aborted } = await behind();
    const raw = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => raw.text().endsWith("served"));
    const following = await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER));
    await eventually(() => following.text().includes("first\n"));
    raw.socket.end();
    following.socket.end();
    await eventually(() => front.connections.proven === 0, { everyMs: 5 });
    await eventually(() => aborted.includes("/stream"));
    expect(aborted).toEqual(["/stream"]);
  });

  test("a server that is not there ends the connection, and nothing else", async () => {
    const { front, server } = await behind();
    await server.stop(0);
    const raw = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await raw.closed;
    expect(raw.text()).toBe("");
    await eventually(() => front.connections.proven === 0);
    expect(front.connections).toEqual({ unproven: 0, proven: 0 });
  });
});

test("400 connections that begin and never end do not take a daemon with 200 descriptors from its owner", async () => {
  await using relay = await initialized({ CLIO_RELAY_LOCAL_LISTEN: "tcp" });
  const daemon = Bun.spawn(["sh", "-c", 'ulimit -n 200; exec "$@"', "sh", process.execPath, MAIN, "desktop", "run"], {
    env: relay.environment,
    stdout: "ignore",
    stderr: "ignore",
  });
  ending.push(() => daemon.kill("SIGKILL"));
  const record = path.join(relay.home, "run", "desktop.json");
  const port = await eventually(() => {
    const { tcp } = JSON.parse(fs.readFileSync(record, "utf8")) as { tcp: { url: string } };
    return Number(new URL(tcp.url).port);
  });
  const strangers: Raw[] = [];
  for (let n = 0; n < 400; n++) strangers.push(await connect(port, n % 2 === 0 ? HALF_HEAD : HALF_BODY));
  expect(await relay.json<{ clusters: unknown[] }>("cluster", "list")).toMatchObject({ clusters: [{ name: "local" }] });
  expect(await relay.json<{ process: { pid: number } }>("desktop", "status")).toMatchObject({ process: { pid: daemon.pid } });
  const open = (): number => strangers.filter((raw) => !raw.isClosed()).length;
  await eventually(() => open() <= 64 && fs.readdirSync(`/proc/${daemon.pid}/fd`).length < 150, { what: "connections that are ended" });
  expect(open()).toBeLessThanOrEqual(64);
});
