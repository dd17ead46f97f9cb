import { afterEach, describe, expect, test } from "bun:test";
import { workerApp } from "../../src/api/worker-app.ts";
import type { WorkerServices } from "../../src/api/worker-services.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { type JobSubmission, laneOf } from "../../src/domain/job.ts";
import type { SchedulerName, SchedulerRequest } from "../../src/domain/scheduler.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const body = (key: string | undefined, argv: readonly string[] = ["true"]) =>
  JSON.stringify({ cluster: "local", kind: "command", spec: { argv }, ...(key === undefined ? {} : { idempotency_key: key }) });

/** What a scheduler's provider never takes. */
function check({ options }: SchedulerRequest): void {
  if (options.includes("--array=1-9")) throw new RelayError("job_submission_refused", "an array is many jobs");
}

/** The app on a real queue, of a worker that can be made to refuse whatever is new. */
function worker(schedulers?: readonly SchedulerName[]) {
  const store = openQueue(directory(), { clock: systemClock, activeJobsMax: 100, leaseSeconds: 120 });
  closing.push(() => store.close());
  const draining = new AbortController();
  let full = false;
  const services = {
    cluster: "local",
    version: "test",
    clock: systemClock,
    store,
    activeJobsMax: 100,
    engines: new Set(["command"] as const),
    laneFor: async (submission: JobSubmission) => laneOf(submission),
    pipelineInputs: async () => ({ pipeline_id: "none", settings: [] }),
    ...(schedulers === undefined ? {} : { scheduler: { providers: () => schedulers, check } }),
    draining: draining.signal,
    async admit() {
      if (full) throw new RelayError("storage_admission_refused", "no room");
    },
    workExpected: () => undefined,
    obstacle: () => null,
    jarvis: async () => null,
  } as unknown as WorkerServices;
  const app = workerApp(services, (error) => {
    throw error;
  });
  return {
    store,
    drain: () => draining.abort(),
    fill: () => {
      full = true;
    },
    async submit(text: string, headers: Record<string, string> = {}) {
      const response = await app.request("/jobs", { method: "POST", body: text, headers });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
  };
}

describe.each([
  ["drains", "shutting_down", 503],
  ["has no room", "storage_admission_refused", 507],
] as const)("a worker that %s", (how, reason, status) => {
  test("still says what a known key has brought about, and takes nothing new", async () => {
    const { submit, drain, fill, store } = worker();
    const first = await submit(body("k"));
    expect(first.status).toBe(201);
    if (how === "drains") drain();
    else fill();
    const again = await submit(body("k"));
    expect(again).toMatchObject({ status: 200, body: { job_id: first.body["job_id"], existing: true } });
    expect(await submit(body(undefined), { "idempotency-key": "k" })).toMatchObject({ status: 200, body: { existing: true } });
    expect(await submit(body("k", ["false"]))).toMatchObject({ status: 409, body: { reason: "job_submission_conflict" } });
    for (const key of ["new", undefined]) expect(await submit(body(key))).toMatchObject({ status, body: { reason } });
    expect((await store.queueWindow({}, { cursor: 1, limit: 10 }, 100)).total).toBe(1);
  });
});

describe("a job for a scheduler", () => {
  const scheduled = (provider: string | null) =>
    JSON.stringify({ cluster: "local", kind: "command", spec: { argv: ["true"], scheduler: { provider } } });

  test("is taken by a worker that has it, by its name or as the cluster's own", async () => {
    const { submit, store } = worker(["slurm"]);
    for (const provider of [null, "slurm"]) {
      const { status, body } = await submit(scheduled(provider));
      expect(status).toBe(201);
      expect((await store.job(body["job_id"] as string)).spec).toMatchObject({ scheduler: { provider } });
    }
  });

  test("is refused for what its scheduler never takes, before it is on record", async () => {
    const { submit, store } = worker(["slurm"]);
    const spec = { argv: ["true"], scheduler: { options: ["--array=1-9"] } };
    const { status, body } = await submit(JSON.stringify({ cluster: "local", kind: "command", spec }));
    expect([status, body["reason"]]).toEqual([422, "job_submission_refused"]);
    expect((await store.stats()).active).toBe(0);
  });

  test.each([
    ["has none", undefined, null],
    ["has none of them any more", [], null],
    ["has another", ["slurm"], "gridengine"],
  ] as const)("is refused by a worker that %s", async (_name, providers, wanted) => {
    const { submit, store } = worker(providers);
    const { status, body } = await submit(scheduled(wanted));
    expect(body).toMatchObject({ status: 422, reason: "scheduler_unavailable", requested: wanted, available: [...(providers ?? [])] });
    expect(status).toBe(422);
    expect((await store.stats()).active).toBe(0);
  });
});
