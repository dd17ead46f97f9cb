import { afterEach, describe, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { problemResponse } from "../../src/api/problem.ts";
import { type OutgoingMessage, sseResponse } from "../../src/api/sse.ts";
import { withWebSockets } from "../../src/api/web-socket.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { listen } from "./web-socket-client.ts";

const directory = temporaryDirectories();
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

/** A server of event streams, with what it was asked and how far it was read. */
function serve(stalledMs?: number) {
  const state = { asked: [] as { url: string; headers: Headers }[], given: 0, left: 0 };
  const app = new Hono();
  const stream = (signal: AbortSignal, messages: (signal: AbortSignal) => AsyncGenerator<OutgoingMessage>) =>
    sseResponse({ messages, signal, clock: systemClock });
  app.get("/count/sse", (c) => {
    state.asked.push({ url: c.req.url, headers: c.req.raw.headers });
    const from = Number(c.req.query("cursor") ?? 1);
    return stream(c.req.raw.signal, async function* () {
      for (let id = from; id <= 3; id++) yield { event: "step", id, data: { id, text: "a\nb é" } };
      if (c.req.query("stop_after_replay") === undefined) yield { event: "terminal", id: 3, data: { state: "succeeded" } };
    });
  });
  app.get("/endless/sse", (c) =>
    stream(c.req.raw.signal, async function* (signal) {
      try {
        for (let id = 1; !signal.aborted; id++) {
          state.given = id;
          yield { event: "step", id, data: "x".repeat(8_000) };
        }
      } finally {
        state.left++;
      }
    }),
  );
  app.get("/quiet/sse", (c) =>
    stream(c.req.raw.signal, async function* (signal) {
      yield { event: "step", id: 1, data: 1 };
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      state.left++;
    }),
  );
  app.get("/cut/sse", (c) =>
    stream(c.req.raw.signal, async function* () {
      yield { event: "step", id: 1, data: 1 };
    }),
  );
  app.get("/broken/sse", () => {
    let turn = 0;
    const body = new ReadableStream({
      pull(out) {
        if (turn++ === 0) out.enqueue(Buffer.from("id: 1\nevent: step\ndata: 1\n\n"));
        else out.error(undefined);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  app.notFound(() => problemResponse(new RelayError("job_not_found", "no")));
  const unix = path.join(directory(), "s");
  const web = withWebSockets((request) => app.fetch(request), stalledMs === undefined ? {} : { stalledMs });
  const server = Bun.serve({ unix, fetch: web.fetch, websocket: web.websocket } as unknown as Bun.Serve.Options<undefined>);
  ending.push(() => server.stop(true));
  return { ...state, state, web, unix, url: (route: string) => `ws+unix://${unix}:${route}` };
}

test("a WebSocket brings what the event stream would, and ends with the reason", async () => {
  const { url, state } = serve();
  const heard = await listen(url("/count/ws?cursor=2&limit=5"), { headers: { "last-event-id": "1" } });
  expect(heard).toEqual({
    messages: [
      ...[2, 3].map((id) => ({ event: "step", id: String(id), data: { id, text: "a\nb é" } })),
      { event: "terminal", id: "3", data: { state: "succeeded" } },
    ],
    code: 1000,
    reason: "terminal",
  });
  expect(new URL(state.asked[0]!.url).search).toBe("?cursor=2&limit=5");
  expect(state.asked[0]!.headers.get("last-event-id")).toBe("1");
  expect([...state.asked[0]!.headers.keys()].filter((name) => /websocket|upgrade/.test(name))).toEqual([]);
});

test("one that is asked for what there is now ends with that", async () => {
  const { url } = serve();
  expect(await listen(url("/count/ws?stop_after_replay=true"))).toMatchObject({ code: 1000, reason: "replayed" });
});

test("one that is not asked to end there, and breaks off, says that there is more", async () => {
  const { url } = serve();
  expect(await listen(url("/cut/ws?stop_after_replay=false"))).toMatchObject({ code: 1001, reason: "stream_ended" });
  expect(await listen(url("/cut/ws?stop_after_replay=0"))).toMatchObject({ code: 1001, reason: "stream_ended" });
  expect(await listen(url("/cut/ws?stop_after_replay=1"))).toMatchObject({ code: 1000, reason: "replayed" });
});

test("a refusal is a close code with the reason", async () => {
  expect(await listen(serve().url("/nothing/ws"))).toEqual({ messages: [], code: 1008, reason: "job_not_found" });
});

test("a stream that breaks off says that there is more", async () => {
  expect(await listen(serve().url("/broken/ws"))).toMatchObject({
    messages: [{ event: "step", id: "1", data: 1 }],
    code: 1001,
    reason: "stream_ended",
  });
});

describe("a token", () => {
  test("as a parameter becomes the header, and goes no further", async () => {
    const { url, state } = serve();
    await listen(url("/count/ws?token=s3cret%2B%3D&cursor=3"));
    expect(state.asked[0]!.headers.get("authorization")).toBe("Bearer s3cret+=");
    expect(state.asked[0]!.url).not.toContain("s3cret");
  });

  test("in the header is the one that counts", async () => {
    const { url, state } = serve();
    await listen(url("/count/ws?token=other"), { headers: { authorization: "Bearer mine" } });
    expect(state.asked[0]!.headers.get("authorization")).toBe("Bearer mine");
  });
});

test("a client that leaves ends its stream", async () => {
  const { url, state } = serve();
  await listen(url("/quiet/ws"), { onMessage: () => true });
  await eventually(() => state.left > 0, { what: "the end of the stream" });
  expect(state.left).toBe(1);
});

test("a client that says much is sent away, one that says little is not answered", async () => {
  const { url, state } = serve();
  const socket = new WebSocket(url("/quiet/ws"));
  const closed = new Promise<number>((resolve) => (socket.onclose = ({ code }) => resolve(code)));
  await new Promise((resolve) => (socket.onmessage = resolve));
  socket.send("hello");
  socket.send("x".repeat(5_000));
  expect(await closed).toBeGreaterThanOrEqual(1002);
  await eventually(() => state.left === 1, { what: "the end of the stream" });
});

test("a server that stops says so", async () => {
  const { url, web } = serve();
  const heard = await listen(url("/quiet/ws"), { onMessage: () => void web.close() });
  expect(heard).toMatchObject({ code: 1001, reason: "shutting_down" });
});

const HANDSHAKE = [
  "Host: relay",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
];

/** A connection that reads only when it is told to. */
async function raw(unix: string, lines: readonly string[]): Promise<net.Socket> {
  const socket = net.connect(unix);
  ending.push(() => socket.destroy());
  socket.on("error", () => undefined);
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.pause();
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  return socket;
}

test("a client that does not read is read no further for, and cut", async () => {
  const { unix, state } = serve(500);
  const socket = await raw(unix, ["GET /endless/ws HTTP/1.1", ...HANDSHAKE]);
  await eventually(() => state.left === 1, { what: "the end of the stream" });
  // What the kernel holds for a socket, and what may wait before it: nowhere near what an endless stream would give meanwhile.
  expect(state.given * 8_000).toBeLessThan(4 * 1024 * 1024);
  socket.resume();
  await eventually(() => socket.destroyed, { what: "the end of the connection" });
});

test("a request that is no handshake is answered", async () => {
  const { unix, state } = serve();
  const socket = await raw(unix, ["GET /endless/ws HTTP/1.1", ...HANDSHAKE.filter((line) => !line.startsWith("Sec-"))]);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.resume();
  await eventually(() => Buffer.concat(chunks).includes("http_request_malformed"), { what: "an answer" });
  expect(Buffer.concat(chunks).toString()).toStartWith("HTTP/1.1 400");
  await eventually(() => state.left === 1, { what: "the end of the stream" });
});
