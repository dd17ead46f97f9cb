import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { HttpPeer } from "../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../src/api/client.ts";
import type { SchedulerCancelAnswer } from "../../src/api/scheduler-services.ts";
import { workerApp } from "../../src/api/worker-app.ts";
import type { WorkerServices } from "../../src/api/worker-services.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { markerOf, type SchedulerJob, type SchedulerName, type SchedulerStatus } from "../../src/domain/scheduler.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { refused, Scene, settlement } from "../contract/queue-store/scene.ts";
import { claimedScheduled, intend, statusOf, submitted } from "../contract/queue-store/scheduler.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const directory = temporaryDirectory();
const scene = await Scene.open(async () => ({
  open: async (options) => openQueue(directory.path, options),
  spoil: async () => undefined,
  dispose: async () => directory[Symbol.dispose](),
}));

/** A scheduler that says what it is told to say, and remembers what it was asked. */
class Spoken {
  has: readonly SchedulerName[] = ["slurm"];
  says: Partial<SchedulerStatus> | null = {};
  cancels: SchedulerCancelAnswer = { kind: "asked", said: "" };
  readonly asked: string[] = [];

  providers = (): readonly SchedulerName[] => this.has;

  observe = async (provider: SchedulerName | null, id: string): Promise<SchedulerStatus> => {
    this.asked.push(`observe ${provider} ${id}`);
    if (this.says === null) throw new RelayError("scheduler_failed", "no source answers");
    return statusOf(scene, id, this.says);
  };

  cancel = async ({ native_id }: SchedulerJob): Promise<SchedulerCancelAnswer> => {
    this.asked.push(`cancel ${native_id}`);
    return this.cancels;
  };
}

let scheduler: Spoken | undefined;
beforeEach(() => {
  scheduler = new Spoken();
});

const services = {
  cluster: "local",
  version: "test",
  clock: scene.clock,
  store: scene.store,
  engines: new Set(["command"] as const),
  logs: { state: async () => ({ size_bytes: 0, complete: true, capture: null }) },
  get scheduler() {
    return scheduler;
  },
  obstacle: () => null,
  jarvis: async () => null,
} as unknown as WorkerServices;
const app = workerApp(services, (error) => {
  throw error;
});
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
const client = new ClusterClient("local", new HttpPeer({ kind: "url", url: server.url.origin, token: "none" }, "", "the worker"));
afterAll(async () => {
  await server.stop(true);
  await scene.dispose();
});

describe("an id is observed", () => {
  test("whoever's it is, and says which job here has it", async () => {
    const fence = await submitted(scene, "4711");
    expect(await client.scheduler.observe("4711")).toMatchObject({ phase: "pending", ...fence, raw_state: "PENDING", queue_position: 3 });
    expect(await client.scheduler.observe("99", { provider: "slurm" })).toMatchObject({
      scheduler_job_id: "99",
      job_id: null,
      attempt: null,
    });
    expect(scheduler?.asked).toEqual(["observe null 4711", "observe slurm 99"]);
    scheduler!.says = { name: "somebody-elses" };
    expect(await client.scheduler.observe("4711")).toMatchObject({ name: "somebody-elses", job_id: null });
    scheduler!.says = { name: markerOf(fence.job_id, 1, null) };
    expect(await client.scheduler.observe("4711")).toMatchObject(fence);
  });

  test("not where there is no scheduler, or none answers", async () => {
    await refused(client.scheduler.observe("1", { provider: "gridengine" }), "scheduler_unavailable");
    scheduler!.says = null;
    await refused(client.scheduler.observe("1"), "scheduler_failed");
    scheduler = undefined;
    const error = await refused(client.scheduler.observe("1"), "scheduler_unavailable");
    expect(error.data).toMatchObject({ requested: null, available: [] });
  });

  test.each(["-f", "a b", "$(id)", "x".repeat(129), "é", "../jobs"])("not when it is none: %p", async (id) => {
    await refused(client.scheduler.observe(id), "request_validation_failed");
    await refused(client.scheduler.cancel(id), "request_validation_failed");
    for (const [method, route] of [
      ["GET", ""],
      ["POST", "/cancel"],
    ] as const) {
      const answer = await fetch(`${server.url.origin}/scheduler/${encodeURIComponent(id)}${route}`, { method });
      expect(await answer.json()).toMatchObject({ status: 422, reason: "request_validation_failed" });
    }
    expect(scheduler?.asked).toEqual([]);
  });
});

describe("the end of an id is asked for", () => {
  test("with the job that it belongs to, while that has not ended", async () => {
    const fence = await submitted(scene, "51");
    expect(await client.scheduler.cancel("51")).toEqual({
      scheduler: "slurm",
      scheduler_job_id: "51",
      ...fence,
      state: "leased",
      disposition: "cancel_requested",
    });
    expect((await scene.store.job(fence.job_id)).cancellation_request).toMatchObject({ cancel_scheduler: true });
    expect(scheduler?.asked).toEqual([]);
    await scene.store.settle(fence, settlement(scene.clock, "canceled"));
    await scene.store.observeScheduler(fence, statusOf(scene, "51", { phase: "canceled", raw_state: "CANCELLED" }));
    expect(await client.scheduler.cancel("51", "slurm")).toMatchObject({ state: "canceled", disposition: "terminal" });
    expect(scheduler?.asked).toEqual([]);
  });

  test("by itself, where it was left to go on", async () => {
    const fence = await submitted(scene, "52");
    expect((await client.cancel(fence.job_id)).cancellation_request).toMatchObject({ cancel_scheduler: false });
    await scene.store.retainSchedulerJob(fence, settlement(scene.clock, "canceled"));
    expect(await client.scheduler.cancel("52")).toMatchObject({ state: "canceled", disposition: "cancel_requested" });
    expect(scheduler?.asked).toEqual(["cancel 52"]);
    expect((await scene.eventTypes(fence.job_id)).at(-1)).toBe("scheduler.cancel_requested");
    for (const [kind, event] of [
      ["refused", "scheduler.cancel_refused"],
      ["doubt", "scheduler.cancel_failed"],
    ] as const) {
      scheduler!.cancels = { kind, said: "it has another name" };
      const error = await refused(client.scheduler.cancel("52"), "scheduler_failed");
      expect(error.message).toContain("it has another name");
      expect((await scene.eventTypes(fence.job_id)).at(-1)).toBe(event);
    }
    scheduler = undefined;
    await refused(client.scheduler.cancel("52"), "scheduler_unavailable");
  });

  test("never where no job of this queue has it", async () => {
    await refused(client.scheduler.cancel("12345"), "resource_ownership_refused");
    await submitted(scene, "53");
    await refused(client.scheduler.cancel("53", "gridengine"), "resource_ownership_refused");
    expect(scheduler?.asked).toEqual([]);
  });
});

test("a job's status has what each attempt has at the scheduler", async () => {
  const { fence } = await claimedScheduled(scene);
  expect((await client.status(fence.job_id)).scheduler).toEqual([]);
  await intend(scene, fence);
  const [intended] = (await client.status(fence.job_id)).scheduler ?? [];
  expect(intended).toMatchObject({ ...fence, task_name: "slurm, attempt 1", submission: "intended", status: null });
  await scene.store.recordSubmission(fence, { kind: "submitted", native_id: "61", scheduler_cluster: "ridge" });
  await scene.store.observeScheduler(fence, statusOf(scene, "61"));
  expect((await client.monitor(fence.job_id)).scheduler).toMatchObject([
    { native_id: "61", scheduler_cluster: "ridge", status: { phase: "pending", queue_position: 3 } },
  ]);
});
