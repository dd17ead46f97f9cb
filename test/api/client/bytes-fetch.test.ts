import { afterEach, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { bytesFetch } from "../../../src/api/client/bytes-fetch.ts";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { serveOnSocket } from "../../../src/api/socket-server.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { nobodyListens } from "../../../src/roles/probe.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

const directory = temporaryDirectories();
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const BYTES = Buffer.alloc(3 * 2 ** 20 + 7, "0123456789");
const put = (unix: string, { target = "/", signal = new AbortController().signal, body = BYTES as Uint8Array } = {}) =>
  bytesFetch(new URL(`http://relay${target}`), { method: "PUT", headers: { "x-name": "a" }, body, signal, unix });

/** A server of ours. */
function serve(app: Hono): string {
  const socket = path.join(directory(), "s");
  const server = serveOnSocket(app, socket);
  ending.push(() => server.stop(0));
  return socket;
}

/** A server that says this to whatever it is told, once it has as many bytes as that. */
async function saying(text: string, { after = 0, close = false } = {}): Promise<{ socket: string; connections: net.Socket[] }> {
  const socket = path.join(directory(), "s");
  const connections: net.Socket[] = [];
  const server = net.createServer((connection) => {
    connections.push(connection);
    let bytes = 0;
    connection.on("error", () => undefined);
    connection.on("data", (chunk) => {
      const before = bytes;
      bytes += chunk.length;
      if (before <= after && bytes > after) connection[close ? "end" : "write"](text);
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  ending.push(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
  return { socket, connections };
}

test("bytes come whole, with what belongs to them, and so does the answer; a connection is used again", async () => {
  const peers = new Set<string>();
  const app = new Hono();
  app.put("/some/where", async (c) => {
    peers.add(c.req.header("x-name") ?? "");
    const body = new Uint8Array(await c.req.arrayBuffer());
    return c.json({ sha256: sha256Hex(body), query: c.req.query("offset"), length: c.req.header("content-length") }, 201, { etag: '"e"' });
  });
  const socket = serve(app);
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(Array.from({ length: 12 }, () => put(socket, { target: "/some/where?offset=7" })));
    for (const answer of answers) {
      expect([answer.status, answer.headers.get("etag")]).toEqual([201, '"e"']);
      expect(await answer.json()).toEqual({ sha256: sha256Hex(BYTES), query: "7", length: String(BYTES.length) });
    }
  }
  expect([...peers]).toEqual(["a"]);
});

test("one connection after the other is made of one, until the answer says that it is the last", async () => {
  const kept = await saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", { after: 65_536 });
  const body = Buffer.alloc(65_536);
  expect(await (await put(kept.socket, { body })).text()).toBe("ok");
  const last = await saying("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", { after: 65_536 });
  for (let i = 0; i < 2; i++) expect(await (await put(last.socket, { body })).text()).toBe("ok");
  expect([kept.connections.length, last.connections.length]).toEqual([1, 2]);
  // A connection that ended meanwhile is not taken for one.
  kept.connections[0]!.destroy();
  await eventually(async () => (await put(kept.socket, { body }).catch(() => null))?.status === 200);
  expect(kept.connections.length).toBe(2);
});

test("an answer that comes before all was sent is the answer", async () => {
  const socket = serve(new Hono().put("/", (c) => c.json({ reason: "payload_too_large" }, 413)));
  const answers = await Promise.all(Array.from({ length: 4 }, () => put(socket)));
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(answers.map(() => ({ reason: "payload_too_large" })));
});

test("who is aborted goes away, and the server knows", async () => {
  const arrived = Promise.withResolvers<AbortSignal>();
  const app = new Hono().put("/", async (c) => {
    arrived.resolve(c.req.raw.signal);
    await new Promise((resolve) => c.req.raw.signal.addEventListener("abort", resolve));
    return c.text("late");
  });
  const socket = serve(app);
  const stop = new AbortController();
  const asked = put(socket, { signal: stop.signal });
  const seen = await arrived.promise;
  stop.abort(new Error("enough"));
  expect(await asked.catch((error: Error) => error.message)).toBe("enough");
  await eventually(() => seen.aborted);
  expect(await put(socket, { signal: stop.signal }).catch((error: Error) => error.message)).toBe("enough");
});

test("a listener that is not there, one that leaves, and one that speaks something else are told apart", async () => {
  const nobody = await put(path.join(directory(), "none")).catch((error: unknown) => error);
  expect(nobodyListens(nobody)).toBe(true);
  const leaving = await saying("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nok", { close: true });
  const left = await put(leaving.socket).catch((error: unknown) => error);
  expect([left instanceof Error, nobodyListens(left)]).toEqual([true, false]);
  const other = await saying("SSH-2.0-OpenSSH_9.2\r\n");
  expect(await put(other.socket).catch((error: unknown) => error)).toMatchObject({ code: "answer_malformed" });
});

test("a client sends large bodies so, and knows a problem by it", async () => {
  const app = new Hono()
    .put("/large", async (c) => c.json({ bytes: (await c.req.arrayBuffer()).byteLength }))
    .put("/refused", () => Response.json({ reason: "storage_admission_refused", detail: "full", status: 507 }, { status: 507 }));
  const peer = new HttpPeer({ kind: "unix", path: serve(app) });
  const sent = await peer.send("/large", { method: "PUT", body: BYTES });
  expect(await sent.json()).toEqual({ bytes: BYTES.length });
  expect(await peer.send("/refused", { method: "PUT", body: BYTES }).catch((error: unknown) => error)).toMatchObject({
    code: "storage_admission_refused",
  });
});
