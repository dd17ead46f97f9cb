import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type net from "node:net";
import type { Duplex } from "node:stream";
import { RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { ChannelPool } from "../../../src/transport/http/channel-pool.ts";
import type { ChannelRequest } from "../../../src/transport/http/request-head.ts";
import { eventually } from "../../runner/wait.ts";
import { answer, bytesOf, channelPools, request, text } from "./pools.ts";

const { serve, peer } = channelPools();

describe("requests to a real server", () => {
  test("carry method, target, fields and body there, and status, fields and body back, over one connection", async () => {
    const { pool, opened } = serve(async (got) =>
      Response.json(
        { method: got.method, url: got.url, a: got.headers.get("x-a"), host: got.headers.get("host"), body: await got.text() },
        { status: 207, headers: { "x-b": "back" } },
      ),
    );
    for (const body of [null, new TextEncoder().encode("bytes"), new Response("stream").body as ReadableStream<Uint8Array>]) {
      const got = await pool.request(
        request("/a/b?c=%20d", { method: body === null ? "DELETE" : "PUT", headers: new Headers({ "x-a": "there" }), body }),
      );
      expect(got.status).toBe(207);
      expect(got.headers.get("x-b")).toBe("back");
      expect(JSON.parse(await text(got))).toEqual({
        method: body === null ? "DELETE" : "PUT",
        url: "http://worker/a/b?c=%20d",
        a: "there",
        host: "worker",
        body: body === null ? "" : body instanceof Uint8Array ? "bytes" : "stream",
      });
    }
    expect(opened()).toBe(1);
  });

  test("carry large bodies both ways unchanged, with a length and in chunks", async () => {
    const { pool } = serve((got) => new Response(got.body, { headers: { "x-length": got.headers.get("content-length") ?? "none" } }));
    const data = randomBytes(5_000_001);
    const streamOf = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        start(controller) {
          for (let at = 0; at < data.length; at += 77_777) controller.enqueue(data.subarray(at, at + 77_777));
          controller.close();
        },
      });
    const ways: Record<string, Partial<ChannelRequest>> = {
      [String(data.length)]: { body: new Uint8Array(data) },
      none: { body: streamOf() },
      "5000001": { body: streamOf(), headers: new Headers({ "content-length": "5000001" }) },
    };
    for (const [length, way] of Object.entries(ways)) {
      const got = await pool.request(request("/", { method: "POST", ...way }));
      expect(got.headers.get("x-length")).toBe(length);
      expect(sha256Hex(await bytesOf(got))).toBe(sha256Hex(data));
    }
  });

  test("many at once, each with its own answer; eight connections are kept for later", async () => {
    const { pool, opened } = serve(async (got) => {
      await Bun.sleep(1);
      return new Response(`you asked for ${new URL(got.url).pathname}`);
    });
    const paths = Array.from({ length: 50 }, (_, n) => `/${n}`);
    const answers = await Promise.all(paths.map(async (at) => text(await pool.request(request(at)))));
    expect(answers).toEqual(paths.map((at) => `you asked for ${at}`));
    expect(opened()).toBeLessThanOrEqual(50);
    expect(pool.size).toBe(8);
  });

  test("a stream comes as it is made, and a reader that goes away is seen there", async () => {
    const gone = Promise.withResolvers<void>();
    const { pool } = serve((got) => {
      got.signal.addEventListener("abort", () => gone.resolve());
      return new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue("tick\n");
            await Bun.sleep(5);
          },
        }),
      );
    });
    const got = await pool.request(request("/"));
    const reader = (got.body as ReadableStream<Uint8Array>).getReader();
    expect(String(Buffer.from((await reader.read()).value!))).toStartWith("tick");
    await reader.cancel();
    await gone.promise;
    expect(pool.size).toBe(0);
  });

  test("a signal ends the request at any time, with its reason, and the other side sees it", async () => {
    let aborts = 0;
    const { pool } = serve((got) => {
      got.signal.addEventListener("abort", () => aborts++);
      return new URL(got.url).pathname === "/head"
        ? new Promise<Response>(() => undefined)
        : new Response(new ReadableStream({ start: (controller) => controller.enqueue("begin"), pull: () => Bun.sleep(1e6) }));
    });
    const stop = new Error("stop");
    const before = new AbortController();
    const waiting = pool.request(request("/head"), before.signal);
    setTimeout(() => before.abort(stop), 20);
    await expect(waiting).rejects.toBe(stop);
    await eventually(() => aborts === 1);
    expect(pool.size).toBe(0);
    await expect(pool.request(request("/head"), before.signal)).rejects.toBe(stop);
    const during = new AbortController();
    const got = await pool.request(request("/body"), during.signal);
    during.abort(stop);
    await expect(bytesOf(got)).rejects.toBe(stop);
    await eventually(() => aborts === 2);
  });

  test("HEAD has no body", async () => {
    const { pool, opened } = serve(() => new Response("body"));
    for (let i = 0; i < 3; i++) expect((await pool.request(request("/", { method: "HEAD" }))).body).toBeNull();
    expect(await text(await pool.request(request("/")))).toBe("body");
    expect(opened()).toBe(1);
  });

  test("what would be read as more than one request is refused here, and the connection stays", async () => {
    const { pool, opened } = serve(() => new Response("x"));
    const bad: Partial<ChannelRequest>[] = [
      { target: "/ HTTP/1.1\r\nX: y" },
      { target: "http://elsewhere/" },
      { target: "/a b" },
      { target: "" },
      { method: "GET / HTTP/1.1\r\n" },
      { method: "" },
    ];
    await pool.request(request("/"));
    for (const part of bad) await expect(pool.request(request("/", part))).rejects.toMatchObject({ code: "http_request_malformed" });
    await pool.request(request("/"));
    expect(opened()).toBe(1);
  });
});

describe("a kept connection that is gone", () => {
  /** Answers once on each connection, and closes the first at the second request. */
  const fickle = (requests: string[]) =>
    peer((connection, n) => {
      let asked = 0;
      connection.on("data", (chunk) => {
        requests.push(String(chunk).split(" ")[0]!);
        if (n === 1 && ++asked === 2) connection.destroy();
        else connection.write(answer(`from ${n}`));
      });
    });

  test("is made good for a safe method, once", async () => {
    const requests: string[] = [];
    const { pool, opened } = await fickle(requests);
    expect(await text(await pool.request(request("/")))).toBe("from 1");
    expect(await text(await pool.request(request("/")))).toBe("from 2");
    expect(requests).toEqual(["GET", "GET", "GET"]);
    expect(opened()).toBe(2);
  });

  test("is the failure of any other request, which is not sent again", async () => {
    for (const more of [{ method: "POST" }, { method: "PUT" }, { method: "DELETE" }, { method: "GET", body: new Uint8Array(3) }]) {
      const requests: string[] = [];
      const { pool, opened } = await fickle(requests);
      await pool.request(request("/"));
      await expect(pool.request(request("/", more))).rejects.toMatchObject({ code: "link_down" });
      expect(requests).toHaveLength(2);
      expect(opened()).toBe(1);
    }
  });

  test("is not made good when an answer had begun, nor when it was a new one", async () => {
    let requests = 0;
    const begun = await peer((connection, n) =>
      connection.on("data", () => {
        requests++;
        if (requests === 1) connection.write(answer("x"));
        else connection.end(n === 1 ? "HTTP/1.1 2" : answer("never"));
      }),
    );
    await begun.pool.request(request("/"));
    await expect(begun.pool.request(request("/"))).rejects.toMatchObject({ code: "link_down" });
    expect(requests).toBe(2);
    const fresh = await peer((connection) => connection.on("data", () => connection.destroy()));
    await expect(fresh.pool.request(request("/"))).rejects.toMatchObject({ code: "link_down" });
    expect(fresh.opened()).toBe(1);
  });

  test("leaves in doubt whether a request was taken on, unless that changes nothing", async () => {
    const { pool } = await peer((connection) => connection.on("data", () => connection.destroy()));
    const said = (more: Partial<ChannelRequest>) => pool.request(request("/", more)).catch((error: Error) => error.message);
    const broke = "the connection broke before it answered";
    expect(await said({ method: "POST" })).toBe(`${broke}; whether the request was taken on is not known`);
    expect([await said({ method: "POST", changes: false }), await said({ method: "GET" })]).toEqual([broke, broke]);
  });

  test("that is silent is given up with what is known of each request", async () => {
    let now = 0;
    const { pool } = await peer((connection) => connection.resume(), { clock: { now: () => now, monotonic: () => now } });
    const said = [{ method: "POST" }, { method: "GET" }, { method: "POST", changes: false }].map((more) =>
      pool.request(request("/", more)).catch((error: Error) => error.message),
    );
    await eventually(() => pool.size === 3);
    now = 100;
    pool.giveUpSilent(100, (one) => new Error(`${one.method}${one.changes === false ? ", reading" : ""}`));
    expect(await Promise.all(said)).toEqual(["POST", "GET", "POST, reading"]);
  });

  test("is noticed while it is idle, as is one that says something that nobody asked for", async () => {
    for (const act of [(connection: net.Socket) => connection.end(), (connection: net.Socket) => connection.write(answer("smuggled"))]) {
      const { pool, connections } = await peer((connection, n) => connection.on("data", () => connection.write(answer(`from ${n}`))));
      await pool.request(request("/"));
      expect(pool.size).toBe(1);
      act(connections[0]!);
      await eventually(() => pool.size === 0);
      expect(await text(await pool.request(request("/", { method: "POST" })))).toBe("from 2");
    }
  });

  test("is dropped after its time", async () => {
    const { pool } = await peer((connection) => connection.on("data", () => connection.write(answer("x"))), { maxIdleMs: 20 });
    await pool.request(request("/"));
    expect(await eventually(() => pool.size === 0)).toBe(true);
  });

  test("has its own time: one that is busy when another's is over is dropped after it, and one that is kept later than another after that", async () => {
    const { pool, connections } = await peer(
      (connection) => connection.on("data", (asked) => String(asked).startsWith("GET /at-once ") && connection.write(answer("x"))),
      { maxIdleMs: 20 },
    );
    const waits = [pool.request(request("/waits")), pool.request(request("/waits"))];
    await eventually(() => connections.length === 2);
    await pool.request(request("/at-once"));
    await eventually(() => pool.size === 2);
    connections[0]!.write(answer("first"));
    await Bun.sleep(5);
    connections[1]!.write(answer("second"));
    expect((await Promise.all(waits.map(async (waiting) => text(await waiting)))).sort()).toEqual(["first", "second"]);
    expect(await eventually(() => pool.size === 0)).toBe(true);
  });
});

test("another protocol gets the connection, with what came behind the head", async () => {
  const { pool } = await peer((connection) =>
    connection.once("data", (chunk) => {
      expect(String(chunk)).toContain("connection: upgrade\r\nupgrade: raw\r\n");
      connection.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\n\r\nfirst,");
      connection.on("data", (more) => connection.end(`then ${more}`));
    }),
  );
  const got = await pool.request(request("/", { upgrade: "raw" }));
  expect(got.status).toBe(101);
  const stream = got.upgraded as Duplex;
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.resume();
  stream.write("this");
  await new Promise((resolve) => stream.once("end", resolve));
  expect(String(Buffer.concat(chunks))).toBe("first,then this");
  expect(pool.size).toBe(0);
});

test("a pool that is closed ends what is under way and takes nothing more", async () => {
  const { pool } = await peer((connection) => connection.resume());
  const waiting = pool.request(request("/"));
  await eventually(() => pool.size === 1);
  const over = new RelayError("link_down", "the link is down");
  pool.close(over);
  await expect(waiting).rejects.toMatchObject({ code: "link_down" });
  await expect(pool.request(request("/"))).rejects.toBe(over);
  expect(pool.size).toBe(0);
});

test("a connection that cannot be had is that request's failure", async () => {
  const refused = new RelayError("channel_refused", "no");
  const pool = new ChannelPool({ open: () => Promise.reject(refused) });
  await expect(pool.request(request("/"))).rejects.toBe(refused);
});

test("a pool that is retired begins nothing on connections that were open, and what is under way on them goes on to its end", async () => {
  const held = Promise.withResolvers<void>();
  const { pool, opened } = serve(async ({ url }) => {
    if (url.endsWith("/held")) await held.promise;
    return new Response("said");
  });
  const under = pool.request(request("/held"));
  expect(String(await bytesOf(await pool.request(request("/"))))).toBe("said");
  expect([opened(), pool.size]).toEqual([2, 2]);
  pool.retire();
  await eventually(() => pool.size === 1, { what: "the end of the free one" });
  await bytesOf(await pool.request(request("/")));
  expect(opened()).toBe(3);
  held.resolve();
  expect(String(await bytesOf(await under))).toBe("said");
  await eventually(() => pool.size === 1, { what: "the end of the other one" });
  await bytesOf(await pool.request(request("/")));
  expect(opened()).toBe(3);
});
