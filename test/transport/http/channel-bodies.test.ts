import { describe, expect, test } from "bun:test";
import { eventually } from "../../runner/wait.ts";
import { answer, bytesOf, channelPools, request, text } from "./pools.ts";

const { serve, peer } = channelPools();

describe("an answer that", () => {
  test("ends before its length is an error, not a short success", async () => {
    const cuts: Record<string, string> = {
      "a length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
      "a large length": "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello",
      chunks: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    };
    for (const [what, cut] of Object.entries(cuts)) {
      const { pool } = await peer((connection) => connection.on("data", () => connection.end(cut)));
      await expect(pool.request(request("/")).then(bytesOf), what).rejects.toMatchObject({ code: "link_down" });
      expect(pool.size).toBe(0);
    }
  });

  test("turns malformed on the way is an error", async () => {
    const { pool } = await peer((connection) =>
      connection.on("data", () => connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzzz\r\n")),
    );
    const got = pool.request(request("/")).then(bytesOf);
    await expect(got).rejects.toMatchObject({ code: "answer_malformed" });
    expect(pool.size).toBe(0);
  });

  test("is followed by something, or says close, is the connection's last", async () => {
    for (const last of [`${answer("x")}HTTP/1.1 200 smuggled`, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"]) {
      const { pool, opened } = await peer((connection) => connection.on("data", () => connection.write(last)));
      expect(await text(await pool.request(request("/")))).toBe("x");
      expect(pool.size).toBe(0);
      expect(await text(await pool.request(request("/")))).toBe("x");
      expect(opened()).toBe(2);
    }
  });

  test("comes before the request's body is through ends that body, and the connection with it", async () => {
    const { pool } = await peer((connection) =>
      connection.once("data", () => connection.write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")),
    );
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await Bun.sleep(1);
        controller.enqueue(new Uint8Array(1_000));
      },
      cancel() {
        cancelled = true;
      },
    });
    const got = await pool.request(request("/", { method: "POST", body: endless }));
    expect(got.status).toBe(413);
    expect(await text(got)).toBe("no");
    await eventually(() => cancelled);
    expect(pool.size).toBe(0);
  });
});

describe("a request's body", () => {
  test("that fails or is not as long as it says fails the request", async () => {
    const { pool } = await peer((connection) => connection.resume());
    const failing = new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error("source")) });
    await expect(pool.request(request("/", { method: "POST", body: failing }))).rejects.toThrow("source");
    for (const length of ["2", "4"]) {
      const body = new Response("abc").body as ReadableStream<Uint8Array>;
      await expect(
        pool.request(request("/", { method: "POST", body, headers: new Headers({ "content-length": length }) })),
      ).rejects.toMatchObject({
        code: "http_request_malformed",
      });
    }
    expect(pool.size).toBe(0);
  });

  test("is read no faster than the other side takes it", async () => {
    const { pool } = await peer((connection) => connection.pause());
    let given = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        given += 65_536;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    const controller = new AbortController();
    const hanging = pool.request(request("/", { method: "POST", body: endless }), controller.signal).catch(() => undefined);
    let before = -1;
    await eventually(
      () => {
        const still = before === given;
        before = given;
        return still && given > 0;
      },
      { everyMs: 100 },
    );
    expect(given).toBeLessThan(8 * 2 ** 20);
    controller.abort();
    await hanging;
  });
});

test("a slow reader of an answer holds up the other side", async () => {
  let given = 0;
  const { pool } = serve(
    () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            given += 65_536;
            controller.enqueue(new Uint8Array(65_536));
          },
        }),
      ),
  );
  const got = await pool.request(request("/"));
  let before = -1;
  await eventually(
    () => {
      const still = before === given;
      before = given;
      return still && given > 0;
    },
    { everyMs: 100 },
  );
  expect(given).toBeLessThan(16 * 2 ** 20);
  await (got.body as ReadableStream).cancel();
});

test("an answer comes as bytes where its head says that it is short, and as a stream otherwise", async () => {
  for (const [chunked, size, kind] of [
    [false, 60_000, "bytes"],
    [false, 2_000_000, "stream"],
    [true, 70_000, "stream"],
    [true, 300_000, "stream"],
  ] as const) {
    const body = "x".repeat(size);
    const begun = Promise.withResolvers<void>();
    const inTwo = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        async start(controller) {
          controller.enqueue(Buffer.from(body.slice(0, 5)));
          // All of it at once would come as bytes, too.
          await begun.promise;
          controller.enqueue(Buffer.from(body.slice(5)));
          controller.close();
        },
      });
    const { pool } = serve(() => new Response(chunked ? inTwo() : body));
    const got = await pool.request(request("/"));
    begun.resolve();
    expect(got.body instanceof Uint8Array ? "bytes" : "stream").toBe(kind);
    expect(await text(got)).toBe(body);
  }
});
