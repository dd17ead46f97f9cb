import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { markerOf, SchedulerJob, SchedulerRequest, type SchedulerStatus } from "../../../src/domain/scheduler.ts";
import { timestamp } from "../../../src/lib/waiting/clock.ts";
import type { Claim, Fence } from "../../../src/queue/store.ts";
import { command, type OpenScene, ROOMY, refused, type Scene, settlement, started } from "./scene.ts";

const request = v.parse(SchedulerRequest, {});

/** A job for a scheduler, which was just claimed. */
export async function claimedScheduled(scene: Scene, retries = 0): Promise<Claim & { readonly fence: Fence }> {
  const job = await scene.submit({ spec: { ...command().spec, retries, scheduler: request } }, "scheduler");
  const claim = await scene.store.claim(await scene.endpoint(), ROOMY);
  expect(claim?.job).toMatchObject({ job_id: job.job_id, lane: "scheduler" });
  return { ...claim!, fence: { job_id: job.job_id, attempt: claim!.attempt.attempt } };
}

export const intend = (scene: Scene, fence: Fence): Promise<SchedulerJob> =>
  scene.store.intendSubmission(fence, { provider: "slurm", marker: markerOf(fence.job_id, fence.attempt, null) });

/** The same with its job submitted as this one. */
export async function submitted(scene: Scene, native_id: string, retries = 0): Promise<Fence> {
  const { fence } = await claimedScheduled(scene, retries);
  await intend(scene, fence);
  await scene.store.recordSubmission(fence, { kind: "submitted", native_id, scheduler_cluster: null });
  return fence;
}

export const statusOf = (scene: Scene, id: string, more: Partial<SchedulerStatus> = {}): SchedulerStatus => ({
  scheduler: "slurm",
  scheduler_job_id: id,
  cluster: null,
  phase: "pending",
  record_found: true,
  active_record_found: true,
  raw_state: "PENDING",
  reason: "Priority",
  name: null,
  partition: "debug",
  qos: "normal",
  account: null,
  user: "ann",
  nodes: null,
  cpus: 4,
  memory: null,
  exit_code: null,
  signal: null,
  submit_time: null,
  eligible_time: null,
  start_time: null,
  end_time: null,
  elapsed_seconds: 0,
  time_limit_seconds: 3_600,
  queue_position: 3,
  jobs_ahead: 2,
  queue_position_scope: "partition debug, qos normal",
  queue_position_note: "approximate",
  observed_at: timestamp(scene.clock),
  ...more,
});

const RUNS = { phase: "running", raw_state: "RUNNING", reason: null, nodes: "node-7", queue_position: null, jobs_ahead: null } as const;
const COMPLETED = { ...RUNS, phase: "completed", raw_state: "COMPLETED", exit_code: 0, active_record_found: false } as const;

/** The attempt's records of a scheduler's job, and the state of the task that stands for the newest. */
async function stands(scene: Scene, { job_id, attempt }: Fence): Promise<{ record: SchedulerJob; task: string | undefined }> {
  const { items } = await scene.store.schedulerJobs(job_id, { cursor: attempt, limit: 1 });
  const record = items[0]!;
  expect(v.is(SchedulerJob, record)).toBe(true);
  return { record, task: (await scene.store.task(record.task_id)).state };
}

/** Events of the scheduler: what they are, with the phase. */
const told = async (scene: Scene, jobId: string): Promise<string[]> =>
  (await scene.events(jobId))
    .filter(({ event_type }) => event_type.startsWith("scheduler."))
    .map(({ event_type, payload }) => `${event_type.slice("scheduler.".length)}${"phase" in payload ? ` ${payload["phase"]}` : ""}`);

const KEEP = { cancel_scheduler: false };

export function schedulerContract(open: OpenScene): void {
  describe("jobs of a scheduler", () => {
    intents(open);
    submissions(open);
    observations(open);
    ends(open);
    lists(open);
  });
}

function intents(open: OpenScene): void {
  test("a submission is intended once, with a task of its own", async () => {
    const scene = await open();
    const { fence, job } = await claimedScheduled(scene);
    const record = await intend(scene, fence);
    const marker = `clio-${job.job_id.slice("job_".length)}-1`;
    expect(record).toMatchObject({ ...fence, provider: "slurm", marker, submission: "intended", native_id: null, retained: false });
    expect(
      (await scene.store.tasks(job.job_id, { cursor: 1, limit: 10 })).items.map(({ task_id, name, state }) => [task_id, name, state]),
    ).toEqual([
      [expect.any(String), "command", "queued"],
      [record.task_id, "slurm, attempt 1", "queued"],
    ]);
    const events = await scene.eventTypes(job.job_id);
    expect(await intend(scene, fence)).toEqual(record);
    expect(await scene.eventTypes(job.job_id)).toEqual(events);
    expect(events.at(-1)).toBe("task.queued");
    await refused(scene.store.intendSubmission(fence, { provider: "gridengine", marker }), "state_conflict");
    await refused(scene.store.intendSubmission({ ...fence, attempt: 2 }, { provider: "slurm", marker }), "attempt_fenced");
    await scene.expectSound();
  });

  test("what may be at the scheduler is never void, so that it is never submitted twice", async () => {
    const scene = await open();
    const { fence } = await claimedScheduled(scene);
    await intend(scene, fence);
    await refused(scene.store.voidAttempt(fence, "a test"), "state_conflict");
    await scene.store.recordSubmission(fence, { kind: "unresolved", message: "nobody knows it" });
    await refused(scene.store.voidAttempt(fence, "a test"), "state_conflict");
    await scene.store.recordSubmission(fence, { kind: "refused" });
    expect((await scene.store.voidAttempt(fence, "a test")).state).toBe("queued");
    expect((await stands(scene, fence)).task).toBe("failed");
    await scene.expectSound();
  });
}

function submissions(open: OpenScene): void {
  test("becomes submitted, once", async () => {
    const scene = await open();
    const { fence } = await claimedScheduled(scene);
    const found = { kind: "submitted", native_id: "4711", scheduler_cluster: "ridge" } as const;
    await refused(scene.store.recordSubmission(fence, found), "state_conflict");
    await intend(scene, fence);
    const record = await scene.store.recordSubmission(fence, found);
    expect(record).toMatchObject({
      submission: "submitted",
      native_id: "4711",
      scheduler_cluster: "ridge",
      submitted_at: timestamp(scene.clock),
    });
    scene.clock.advance(1_000);
    expect(await scene.store.recordSubmission(fence, found)).toEqual(record);
    await refused(scene.store.recordSubmission(fence, { ...found, native_id: "4712" }), "state_conflict");
    await refused(scene.store.recordSubmission(fence, { kind: "unresolved", message: "it" }), "state_conflict");
    await refused(scene.store.recordSubmission(fence, { kind: "refused" }), "state_conflict");
    await refused(scene.store.recordSubmission({ ...fence, attempt: 3 }, found), "attempt_fenced");
    const [event] = (await scene.events(fence.job_id)).filter(({ event_type }) => event_type === "scheduler.job_detected");
    expect(event).toMatchObject({
      payload: { attempt: 1, task_id: record.task_id, scheduler_job_id: "4711", cluster: "ridge", reconciled: false },
    });
    expect(await told(scene, fence.job_id)).toEqual(["job_detected"]);
    await scene.expectSound();
  });

  test("a doubt is told once, and ends as submitted or refused", async () => {
    const scene = await open();
    for (const [end, last] of [
      [{ kind: "submitted", native_id: "12", scheduler_cluster: null }, ["job_detected"]],
      [{ kind: "refused" }, []],
    ] as const) {
      const { fence } = await claimedScheduled(scene);
      await intend(scene, fence);
      const doubt = await scene.store.recordSubmission(fence, { kind: "unresolved", message: "two jobs have its name" });
      expect(await scene.store.recordSubmission(fence, { kind: "unresolved", message: "none has" })).toEqual(doubt);
      expect(doubt).toMatchObject({ submission: "unresolved", native_id: null });
      expect((await scene.store.recordSubmission(fence, end)).submission).toBe(end.kind);
      expect(await told(scene, fence.job_id)).toEqual(["reconciliation_unresolved", ...last]);
    }
    await scene.expectSound();
  });
}

function observations(open: OpenScene): void {
  test("a change of phase is an event, and the task follows", async () => {
    const scene = await open();
    const fence = await submitted(scene, "4711");
    const seen: [string, string | undefined][] = [];
    for (const more of [
      {},
      { queue_position: 1 },
      RUNS,
      { phase: "unknown", raw_state: "SPECIAL_EXIT", reason: null },
      RUNS,
      COMPLETED,
    ] as const) {
      scene.clock.advance(5_000);
      await scene.store.observeScheduler(fence, statusOf(scene, "4711", more));
      const { record, task } = await stands(scene, fence);
      seen.push([record.status!.phase, task]);
    }
    expect(seen).toEqual([
      ["pending", "queued"],
      ["pending", "queued"],
      ["running", "running"],
      ["unknown", "running"],
      ["running", "running"],
      ["completed", "succeeded"],
    ]);
    expect(await told(scene, fence.job_id)).toEqual([
      "job_detected",
      "job_pending pending",
      "job_running running",
      "job_unknown unknown",
      "job_running running",
      "job_completed completed",
    ]);
    const { record } = await stands(scene, fence);
    expect(record).toMatchObject({ observed_at: timestamp(scene.clock), ended_at: timestamp(scene.clock), status: { exit_code: 0 } });
    expect((await scene.store.job(fence.job_id)).state).toBe("leased");
    await scene.expectSound();
  });

  test("keeps the newest, and what says nothing new only after a minute", async () => {
    const scene = await open();
    const fence = await submitted(scene, "4711");
    const first = await scene.store.observeScheduler(fence, statusOf(scene, "4711"));
    const before = { ...statusOf(scene, "4711", RUNS), observed_at: "2029-12-31T23:59:59.000Z" };
    expect(await scene.store.observeScheduler(fence, before)).toEqual(first);
    scene.clock.advance(59_000);
    expect(await scene.store.observeScheduler(fence, statusOf(scene, "4711", { elapsed_seconds: 59 }))).toEqual(first);
    scene.clock.advance(1_000);
    const later = await scene.store.observeScheduler(fence, statusOf(scene, "4711", { elapsed_seconds: 60 }));
    expect(later).toMatchObject({ observed_at: timestamp(scene.clock), status: { elapsed_seconds: 60 } });
  });

  test("is refused of another job, of one that is not submitted, and of one that is over", async () => {
    const scene = await open();
    const { fence } = await claimedScheduled(scene);
    await refused(scene.store.observeScheduler(fence, statusOf(scene, "4711")), "state_conflict");
    await intend(scene, fence);
    await refused(scene.store.observeScheduler(fence, statusOf(scene, "4711")), "state_conflict");
    await scene.store.recordSubmission(fence, { kind: "submitted", native_id: "4711", scheduler_cluster: null });
    await refused(scene.store.observeScheduler(fence, statusOf(scene, "4712")), "state_conflict");
    await refused(scene.store.observeScheduler(fence, statusOf(scene, "4711", { scheduler: "gridengine" })), "state_conflict");
    await scene.store.observeScheduler(fence, statusOf(scene, "4711", RUNS));
    await scene.store.settle(fence, settlement(scene.clock, "completed"));
    // The scheduler takes a while to see it.
    scene.clock.advance(1_000);
    await scene.store.observeScheduler(fence, statusOf(scene, "4711", COMPLETED));
    await refused(scene.store.observeScheduler(fence, statusOf(scene, "4711", COMPLETED)), "attempt_fenced");
    await scene.expectSound();
  });

  test("what the scheduler starts again has not ended", async () => {
    const scene = await open();
    const fence = await submitted(scene, "4711");
    await scene.store.observeScheduler(fence, statusOf(scene, "4711", { phase: "failed", raw_state: "NODE_FAIL" }));
    expect((await stands(scene, fence)).task).toBe("failed");
    scene.clock.advance(5_000);
    expect(await scene.store.observeScheduler(fence, statusOf(scene, "4711"))).toMatchObject({
      ended_at: null,
      status: { phase: "pending" },
    });
    expect((await stands(scene, fence)).task).toBe("queued");
  });
}

function ends(open: OpenScene): void {
  test("the task has an end when the attempt has, even where the scheduler has not told one", async () => {
    const scene = await open();
    for (const [reason, state] of [
      ["completed", "succeeded"],
      ["exit_nonzero", "failed"],
      ["canceled", "canceled"],
    ] as const) {
      const fence = await submitted(scene, `of ${reason}`);
      await scene.store.startAttempt(fence, started(scene.clock));
      await scene.store.observeScheduler(fence, statusOf(scene, `of ${reason}`, RUNS));
      await scene.store.settle(fence, settlement(scene.clock, reason));
      expect((await stands(scene, fence)).task).toBe(state);
    }
    await scene.expectSound();
  });

  test("a cancel that does not mean the scheduler's job leaves it to go on, in one commit", async () => {
    const scene = await open();
    const fence = await submitted(scene, "4711");
    await scene.store.observeScheduler(fence, statusOf(scene, "4711", RUNS));
    const canceled = settlement(scene.clock, "canceled");
    await refused(scene.store.retainSchedulerJob(fence, canceled), "state_conflict");
    expect((await scene.store.requestCancel(fence.job_id, KEEP)).state).toBe("leased");
    await refused(scene.store.retainSchedulerJob(fence, settlement(scene.clock, "exit_nonzero")), "state_conflict");
    const job = await scene.store.retainSchedulerJob(fence, canceled);
    expect(job).toMatchObject({ state: "canceled", cancellation_request: { acknowledged_at: timestamp(scene.clock) } });
    expect(await stands(scene, fence)).toMatchObject({ record: { retained: true, ended_at: null }, task: "running" });
    const acknowledged = (await scene.events(fence.job_id)).find(({ event_type }) => event_type === "job.cancel_acknowledged");
    expect(acknowledged?.message).toContain("4711");
    await refused(scene.store.retainSchedulerJob(fence, canceled), "attempt_fenced");
    // It is looked at until it has ended.
    expect((await scene.store.openSchedulerJobs()).map(({ native_id }) => native_id)).toEqual(["4711"]);
    scene.clock.advance(5_000);
    await scene.store.observeScheduler(fence, statusOf(scene, "4711", COMPLETED));
    expect((await stands(scene, fence)).task).toBe("succeeded");
    expect(await scene.store.openSchedulerJobs()).toEqual([]);
    await scene.expectSound();
  });

  test("is not left when somebody has asked for its end, too, or when it may not be there", async () => {
    const scene = await open();
    const fence = await submitted(scene, "4711");
    await scene.store.requestCancel(fence.job_id, KEEP);
    await scene.store.requestCancel(fence.job_id, { cancel_scheduler: true });
    await refused(scene.store.retainSchedulerJob(fence, settlement(scene.clock, "canceled")), "state_conflict");
    const doubtful = (await claimedScheduled(scene)).fence;
    await intend(scene, doubtful);
    await scene.store.requestCancel(doubtful.job_id, KEEP);
    await refused(scene.store.retainSchedulerJob(doubtful, settlement(scene.clock, "canceled")), "state_conflict");
    const none = (await claimedScheduled(scene)).fence;
    await scene.store.requestCancel(none.job_id, KEEP);
    await refused(scene.store.retainSchedulerJob(none, settlement(scene.clock, "canceled")), "state_conflict");
  });

  test("a job that cannot be read says what it has at the scheduler", async () => {
    const scene = await open();
    const fence = await submitted(scene, "4711");
    await scene.reopen(() => scene.backend.spoil(fence.job_id));
    expect(await scene.store.unreadable(fence.job_id)).toMatchObject({
      attempt: 1,
      scheduler_job: { native_id: "4711", submission: "submitted" },
    });
    await scene.store.endUnreadable(fence.job_id, "canceled", "a test");
    expect((await stands(scene, fence)).task).toBe("canceled");
  });
}

function lists(open: OpenScene): void {
  test("every attempt has one of its own, in pages", async () => {
    const scene = await open();
    const fence = await submitted(scene, "1", 1);
    await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero"));
    scene.clock.advance(1_000);
    const claim = await scene.store.claim(await scene.endpoint(), ROOMY);
    expect(claim?.attempt.attempt).toBe(2);
    const second = { ...fence, attempt: 2 };
    await intend(scene, second);
    await scene.store.recordSubmission(second, { kind: "submitted", native_id: "2", scheduler_cluster: null });
    const page = await scene.store.schedulerJobs(fence.job_id, { cursor: 1, limit: 1 });
    expect(page).toMatchObject({ items: [{ attempt: 1, native_id: "1" }], next_cursor: 2, total: 2 });
    expect((await scene.store.schedulerJobs(fence.job_id, { cursor: 2, limit: 5 })).items).toMatchObject([{ attempt: 2, native_id: "2" }]);
    await refused(scene.store.schedulerJobs("job_none", { cursor: 1, limit: 1 }), "job_not_found");
    await scene.expectSound();
  });

  test("an id leads to the newest job that has had it", async () => {
    const scene = await open();
    const [first, second] = [await submitted(scene, "7"), await submitted(scene, "7")];
    expect(await scene.store.schedulerJobOf("slurm", "7")).toMatchObject({ job_id: second.job_id });
    expect(await scene.store.schedulerJobOf(null, "7")).toMatchObject({ job_id: second.job_id });
    expect(await scene.store.schedulerJobOf("gridengine", "7")).toBeNull();
    expect(await scene.store.schedulerJobOf(null, "70")).toBeNull();
    expect(first.job_id).not.toBe(second.job_id);
  });

  test("what may still go on there is found by a worker that starts", async () => {
    const scene = await open();
    const { fence: intended } = await claimedScheduled(scene);
    await intend(scene, intended);
    const going = await submitted(scene, "1");
    const over = await submitted(scene, "2");
    await scene.store.settle(over, settlement(scene.clock, "completed"));
    const gone = await submitted(scene, "3");
    await scene.store.settle(gone, settlement(scene.clock, "completed"));
    await scene.store.observeScheduler(gone, statusOf(scene, "3", { phase: "unknown", record_found: false, active_record_found: false }));
    const doubtful = (await claimedScheduled(scene)).fence;
    await intend(scene, doubtful);
    await scene.store.recordSubmission(doubtful, { kind: "unresolved", message: "nobody knows it" });
    const given = (await claimedScheduled(scene)).fence;
    await intend(scene, given);
    await scene.store.requestCancel(given.job_id, KEEP);
    await scene.store.settle(given, settlement(scene.clock, "canceled"));
    const refusal = (await claimedScheduled(scene)).fence;
    await intend(scene, refusal);
    await scene.store.recordSubmission(refusal, { kind: "refused" });
    await scene.reopen();
    expect((await scene.store.openSchedulerJobs()).map(({ job_id }) => job_id)).toEqual(
      [intended, going, over, doubtful].map(({ job_id }) => job_id),
    );
    await scene.expectSound();
  });
}
