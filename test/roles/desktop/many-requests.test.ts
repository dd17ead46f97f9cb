import { afterAll, beforeAll, expect, test } from "bun:test";
import http from "node:http";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { startHung, startWorkerLike, type WorkerLike } from "./worker-like.ts";

/** More than one process sends at a time. */
const MANY = 300;
/** Of 240 places one cluster has a half, and 1,000 more requests to it may wait. */
const TAKEN = 1_120;

let directory: ReturnType<typeof temporaryDirectory>;
let daemon: TestDaemon;
let near: WorkerLike;

beforeAll(async () => {
  directory = temporaryDirectory();
  // None of the requests is given up while they are looked at.
  daemon = await startDaemon(directory.path, { clusters: ["near", "hung", "away"], patience: { silentMs: 600_000, probeMs: 600_000 } });
  near = startWorkerLike(daemon.paths.workerSocket("near"));
});
afterAll(async () => {
  await near.stop();
  await daemon.stop();
  directory[Symbol.dispose]();
});

interface Asked {
  readonly answer: Promise<{ readonly status: number; readonly text: string }>;
  giveUp(): void;
}

/** A request over a connection of its own, of which a process sends any number. */
function ask(path: string): Asked {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const socketPath = daemon.address.kind === "unix" ? daemon.address.path : "";
  const request = http.get({ socketPath, path, agent: false }, (message) => {
    let text = "";
    message.on("data", (bytes) => (text += String(bytes)));
    message.once("end", () => resolve({ status: message.statusCode!, text }));
    message.once("error", reject);
  });
  request.once("error", reject);
  promise.catch(() => undefined);
  return { answer: promise, giveUp: () => void request.destroy() };
}

const active = async (): Promise<number> => (await daemon.client.status()).active_requests;

test("any number of requests at a worker that hangs leaves the others theirs; what is too many is refused, and given up leaves its place", async () => {
  const socket = daemon.paths.workerSocket("hung");
  const hung = startHung(socket);
  const asked: Asked[] = [];
  let over = 0;
  const more = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const one = ask("/clusters/hung/jobs");
      one.answer.then(
        () => over++,
        () => over++,
      );
      asked.push(one);
    }
    await eventually(async () => (await active()) + over >= Math.min(asked.length, TAKEN), { what: "that the daemon has them" });
  };
  try {
    await more(MANY);
    expect((await ask("/clusters/near/echo").answer).status).toBe(201);
    expect((await daemon.fetch("/clusters/near/echo")).status).toBe(201);
    expect(over).toBe(0);
    while (asked.length < TAKEN) await more(Math.min(MANY, TAKEN - asked.length));
    expect(over).toBe(0);
    const { status, text } = await ask("/clusters/hung/jobs").answer;
    expect([status, JSON.parse(text)]).toEqual([
      503,
      expect.objectContaining({ reason: "cluster_busy", retryable: true, cluster: "hung", sent: false }),
    ]);
    expect((await ask("/clusters/near/echo").answer).status).toBe(201);
  } finally {
    for (const one of asked) one.giveUp();
    hung.stop();
  }
  await eventually(async () => (await active()) === 0, { what: "that nothing waits" });
  const again = startWorkerLike(socket);
  try {
    const statuses = await Promise.all(Array.from({ length: MANY }, async () => (await ask("/clusters/hung/echo").answer).status));
    expect(statuses).toEqual(new Array(MANY).fill(201));
  } finally {
    await again.stop();
  }
});

test("a worker that stops answering is told of at once, as it was known", async () => {
  const of = async (patience?: number) => (await daemon.client.links(undefined, patience)).find(({ cluster }) => cluster === "away")!;
  const socket = daemon.paths.workerSocket("away");
  expect(await of()).toMatchObject({ state: "down", since: null, detail: "no worker is running" });
  const worker = startWorkerLike(socket);
  await eventually(async () => (await of()).state === "up", { what: "a sign of life" });
  await worker.stop();
  const hung = startHung(socket);
  try {
    const silent = await of(0);
    expect(silent).toMatchObject({ state: "degraded", worker_version: "9.9.9", round_trip_ms: expect.any(Number) });
    expect(silent.detail).toMatch(/^the worker is not answering, since 2\S+Z; what is said of it is of 2\S+Z$/);
    // Nobody waits again for what is known, and it is not silent since a later time for that.
    expect(await of(100)).toMatchObject({ state: "degraded", since: silent.since });
  } finally {
    hung.stop();
  }
  await eventually(async () => (await of()).state === "down", { what: "that nobody is there" });
});
