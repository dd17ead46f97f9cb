import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import type { Patience } from "../../../src/roles/desktop/forward.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { startHung, startWorkerLike, type WorkerLike } from "./worker-like.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let daemon: TestDaemon;
let worker: WorkerLike;

async function start(patience?: Patience): Promise<void> {
  daemon = await startDaemon(directory.path, { clusters: ["near", "dead", "hung"], ...(patience === undefined ? {} : { patience }) });
  worker = startWorkerLike(daemon.paths.workerSocket("near"));
}
/** A daemon that finds a hung worker after so long. */
async function restart(patience: Patience): Promise<void> {
  await worker.stop();
  await daemon.stop();
  await start(patience);
}

beforeEach(async () => {
  directory = temporaryDirectory();
  await start();
});
afterEach(async () => {
  await worker.stop();
  await daemon.stop();
  directory[Symbol.dispose]();
});

const reason = async (response: Response): Promise<unknown> => ((await response.json()) as { reason: unknown }).reason;

describe("a request reaches the worker as it was sent", () => {
  test("method, path, query and body", async () => {
    const body = JSON.stringify({ name: 'a\nb"é' });
    const response = await daemon.fetch("/clusters/near/jobs%2Fx/a%20b?q=%26&q=2", { method: "POST", body });
    expect(response.status).toBe(201);
    expect(response.headers.get("x-own")).toBe("1");
    expect(worker.seen).toHaveLength(1);
    expect(worker.seen[0]).toMatchObject({ method: "POST", url: "http://worker/jobs%2Fx/a%20b?q=%26&q=2", body });
  });

  test("headers, but those of the connection and the daemon's token", async () => {
    const headers = {
      "idempotency-key": "k",
      "last-event-id": "7",
      authorization: "Bearer secret",
      te: "trailers",
      connection: "keep-alive, x-mine",
      "x-mine": "1",
      "x-any": "y",
    };
    await daemon.fetch("/clusters/near/echo", { headers });
    const seen = worker.seen[0]!.headers;
    expect(seen).toMatchObject({ "idempotency-key": "k", "last-event-id": "7", "x-any": "y" });
    for (const name of ["authorization", "te", "x-mine"]) expect([name, seen[name]]).toEqual([name, undefined]);
  });

  test("dots in a path stay below the cluster that they name", async () => {
    // The URL's own rules resolve them before the daemon sees the path.
    const response = await daemon.fetch("/clusters/near/../../stop", { method: "GET" });
    expect(response.status).toBe(405);
    expect(worker.seen).toEqual([]);
  });
});

describe("an answer comes back as it was given", () => {
  test("status, headers, partial content, version of the worker", async () => {
    const response = await daemon.fetch("/clusters/near/part");
    expect(response.status).toBe(206);
    expect(response.headers.get("etag")).toBe('"x"');
    expect(response.headers.get("content-range")).toBe("bytes 0-4/10");
    expect(response.headers.get("content-length")).toBe("5");
    expect(response.headers.get("clio-relay-version")).toBe("9.9.9");
    expect(await response.text()).toBe("hello");
  });

  test("problems, not modified, packed bytes", async () => {
    const problem = await daemon.fetch("/clusters/near/problem");
    expect([problem.status, problem.headers.get("content-type"), await reason(problem)]).toEqual([
      404,
      "application/problem+json",
      "job_not_found",
    ]);
    expect((await daemon.fetch("/clusters/near/none")).status).toBe(304);
    const packed = await daemon.fetch("/clusters/near/packed", { decompress: false } as RequestInit);
    expect(Buffer.from(Bun.gunzipSync(Buffer.from(await packed.arrayBuffer()))).toString()).toBe("hello");
  });

  test("a stream, while it is made", async () => {
    const abort = new AbortController();
    const response = await daemon.fetch("/clusters/near/two", { signal: abort.signal });
    const first = await response.body!.getReader().read();
    expect(Buffer.from(first.value!).toString()).toBe("data: 1\n\n");
    abort.abort();
    expect(await eventually(() => worker.aborted.includes("/two"))).toBe(true);
  });

  test("byte for byte, however slowly it is taken", async () => {
    const response = await daemon.fetch("/clusters/near/numbered");
    const got = new Bun.CryptoHasher("sha256");
    let reads = 0;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      got.update(chunk);
      if (reads++ % 16 === 0) await new Promise((later) => setTimeout(later, 5));
    }
    const expected = new Bun.CryptoHasher("sha256");
    for (let piece = 0; piece < 256; piece++) expected.update(new Uint8Array(65_536 + piece).fill(piece));
    expect(got.digest("hex")).toBe(expected.digest("hex"));
  });

  test("no faster than it is taken", async () => {
    const response = await daemon.fetch("/clusters/near/endless");
    const reader = response.body!.getReader();
    await reader.read();
    let before = -1;
    const settled = await eventually(
      () => {
        const same = before === worker.produced();
        before = worker.produced();
        return same;
      },
      { everyMs: 200 },
    );
    expect(settled).toBe(true);
    expect(worker.produced()).toBeLessThan(32 * 1024 * 1024);
    await reader.cancel();
    expect(await eventually(() => worker.aborted.includes("/endless"))).toBe(true);
  });
});

test("a body streams to the worker, whatever its size", async () => {
  const piece = new Uint8Array(1024 * 1024);
  let left = 200;
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(piece);
      if (--left === 0) controller.close();
    },
  });
  const response = await daemon.fetch("/clusters/near/count", { method: "POST", body });
  expect(await response.json()).toEqual({ bytes: 200 * 1024 * 1024 });
});

test("who goes away before the answer is gone on the other side too", async () => {
  const abort = new AbortController();
  const waiting = daemon.fetch("/clusters/near/quiet", { signal: abort.signal });
  await eventually(async () => (await daemon.client.status()).active_requests === 1);
  abort.abort();
  await expect(waiting).rejects.toThrow();
  expect(await eventually(() => worker.aborted.includes("/quiet"))).toBe(true);
  expect(await eventually(async () => (await daemon.client.status()).active_requests === 0)).toBe(true);
});

describe("each failure is of one request", () => {
  test("a cluster that is not registered, naming those that are", async () => {
    const response = await daemon.fetch("/clusters/none/jobs");
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ reason: "cluster_not_found", hint: "clusters: near, dead, hung" });
  });

  test("a worker that does not run, with the command that starts it", async () => {
    const response = await daemon.fetch("/clusters/dead/jobs");
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({
      reason: "worker_not_running",
      cluster: "dead",
      retryable: true,
      hint: "clio-relay worker start --cluster dead",
    });
  });

  test("a socket that a dead worker left is the same", async () => {
    const socket = daemon.paths.workerSocket("dead");
    const child = Bun.spawn(
      [
        process.execPath,
        "-e",
        `Bun.listen({ unix: ${JSON.stringify(socket)}, socket: { data() {} } }); process.kill(process.pid, "SIGKILL");`,
      ],
      { stdout: "ignore", stderr: "ignore" },
    );
    await child.exited;
    expect(fs.existsSync(socket)).toBe(true);
    expect(await reason(await daemon.fetch("/clusters/dead/jobs"))).toBe("worker_not_running");
  });

  test("a worker that goes away before it answers: of what changes something it is not known whether it was taken on", async () => {
    const gone = Bun.listen({ unix: daemon.paths.workerSocket("dead"), socket: { data: (peer) => void peer.terminate() } });
    try {
      const detail = async (method: string, target: string): Promise<unknown> =>
        ((await (await daemon.fetch(`/clusters/dead${target}`, { method })).json()) as { detail: string }).detail;
      const broke = "the connection to the worker of dead broke before it answered";
      expect(await detail("POST", "/jobs/job_1/cancel")).toBe(`${broke}; whether the request was taken on is not known`);
      expect([await detail("GET", "/jobs"), await detail("POST", "/jobs/job_1/wait?timeout_seconds=5")]).toEqual([broke, broke]);
    } finally {
      gone.stop(true);
    }
  });

  test("a worker that hangs, found by asking it something easy; others are not held up", async () => {
    await restart({ silentMs: 50, probeMs: 2_000 });
    const hung = startHung(daemon.paths.workerSocket("hung"));
    try {
      const waiting = Array.from({ length: 20 }, () => daemon.fetch("/clusters/hung/jobs"));
      expect((await daemon.fetch("/clusters/near/echo")).status).toBe(201);
      for (const response of await Promise.all(waiting)) {
        expect(response.status).toBe(503);
        expect(await response.json()).toMatchObject({ reason: "link_down", cluster: "hung" });
      }
    } finally {
      hung.stop();
    }
  });

  test("a worker that hangs in the middle of an answer; who follows something waits for it", async () => {
    await restart({ silentMs: 50, probeMs: 200 });
    // Late enough for a question that is not answered either to be on its way.
    const begun = async (head: string): Promise<string> => {
      await hung.probed;
      const type = head.includes("/sse") ? "text/event-stream" : "application/octet-stream";
      return `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: ${type}\r\n\r\n5\r\nbegun\r\n`;
    };
    const hung = startHung(daemon.paths.workerSocket("hung"), begun);
    const read = async (path: string) => {
      const reader = (await daemon.fetch(`/clusters/hung${path}`)).body!.getReader();
      expect(String(Buffer.from((await reader.read()).value!))).toBe("begun");
      const next = reader.read().then(
        () => "more",
        () => "broken off",
      );
      return { reader, next };
    };
    try {
      const followed = [await read("/jobs/j/logs/stdout/content?follow=true"), await read("/jobs/j/events/sse")];
      // Each is found to hang: twice as long as it takes.
      for (let n = 0; n < 2; n++) expect(await (await read("/artifacts/a/content")).next).toBe("broken off");
      for (const { reader, next } of followed) {
        expect(await Promise.race([next, Promise.resolve("waiting")])).toBe("waiting");
        await reader.cancel().catch(() => undefined);
      }
      await eventually(async () => (await daemon.client.status()).active_requests === 0);
    } finally {
      hung.stop();
    }
  });

  test("a request that is only quiet goes on while the worker answers others", async () => {
    await restart({ silentMs: 20, probeMs: 60_000 });
    const abort = new AbortController();
    const quiet = daemon.fetch("/clusters/near/quiet", { signal: abort.signal }).then(
      () => "answered",
      () => "ended",
    );
    await eventually(() => worker.probed() >= 5, { what: "a worker that is asked whether it lives" });
    expect(await Promise.race([quiet, Promise.resolve("waiting")])).toBe("waiting");
    abort.abort();
    expect(await quiet).toBe("ended");
  });
});

test("links say which worker answers, and the slow one does not keep the answer", async () => {
  const hung = startHung(daemon.paths.workerSocket("hung"));
  try {
    const links = await daemon.client.links();
    expect(links.map(({ cluster, state, worker_version }) => [cluster, state, worker_version])).toEqual([
      ["near", "up", "9.9.9"],
      ["dead", "down", null],
      ["hung", "degraded", null],
    ]);
    expect(links[0]!.round_trip_ms).toBeGreaterThan(0);
  } finally {
    hung.stop();
  }
});
