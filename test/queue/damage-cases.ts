import { expect } from "bun:test";
import { timelineEntry } from "../contract/queue-store/ingest.ts";
import { command, ROOMY } from "../contract/queue-store/scene.ts";
import type { Sample, Statement } from "./damage-sample.ts";

/** Rows of one job in another table than jobs. */
export const OF = "job = (SELECT sequence FROM jobs WHERE job_id = ?)";

/** Edges of one job. */
const USED_BY = "consumer = (SELECT sequence FROM jobs WHERE job_id = ?)";

/** One way to damage a queue, with what finds it. */
export interface Case {
  readonly name: string;
  readonly check: string;
  readonly damage: (s: Sample) => readonly Statement[];
  /** An index whose only page is spoilt, so that its entries no longer match the table. */
  readonly index?: string;
  readonly subject?: (s: Sample) => string;
  /** What has to hold after the repair besides a clean audit. */
  readonly after?: (s: Sample) => Promise<void>;
}

/** What a repair puts right. */
export const MENDED: readonly Case[] = [
  {
    name: "an event counter that lags behind",
    check: "event_counter",
    damage: (s) => [["UPDATE jobs SET next_seq = 2 WHERE job_id = ?", s.ended]],
    subject: (s) => s.ended,
    after: async ({ scene, ended }) => {
      await scene.store.appendEvents(ended, [{ event_type: "execution.adopted", message: "after the repair" }]);
      const events = await scene.events(ended);
      expect(events.at(-1)).toMatchObject({ seq: events.length, message: "after the repair" });
    },
  },
  {
    name: "an event counter that runs ahead",
    check: "event_counter",
    damage: (s) => [["UPDATE jobs SET next_seq = next_seq + 10 WHERE job_id = ?", s.queued]],
    subject: (s) => s.queued,
  },
  {
    name: "a task event counter that lags behind",
    check: "task_event_counter",
    damage: (s) => [[`UPDATE tasks SET next_seq = 1 WHERE ${OF}`, s.ended]],
    after: async ({ scene, ended }) => {
      const { task_id } = (await scene.store.tasks(ended, { cursor: 1, limit: 1 })).items[0]!;
      expect((await scene.store.recordTaskEvent(task_id, timelineEntry())).seq).toBe(3);
    },
  },
  {
    name: "a task whose state is not its job's",
    check: "task_state",
    damage: (s) => [[`UPDATE tasks SET state = 'running' WHERE ${OF}`, s.queued]],
    after: async ({ scene, queued }) => {
      expect((await scene.store.tasks(queued, { cursor: 1, limit: 1 })).items[0]?.state).toBe("queued");
    },
  },
  {
    name: "a job without a task",
    check: "task",
    damage: (s) => [[`DELETE FROM tasks WHERE ${OF}`, s.running]],
    subject: (s) => s.running,
    after: async ({ scene, running }) => {
      expect((await scene.store.tasks(running, { cursor: 1, limit: 1 })).items[0]).toMatchObject({ state: "running", name: "command" });
    },
  },
  {
    name: "a running job without a lease",
    check: "lease",
    damage: (s) => [[`DELETE FROM leases WHERE ${OF}`, s.running]],
    subject: (s) => s.running,
    after: async ({ scene, running }) => {
      const { leased_by } = await scene.store.job(running);
      expect((await scene.store.heartbeat(leased_by!, null)).map((lease) => lease.job_id)).toEqual([running]);
    },
  },
  {
    name: "a lease of a job that is queued",
    check: "lease",
    damage: (s) => [
      [
        `INSERT INTO leases (job, lease_id, endpoint_id, attempt, kind, lane, acquired_at, expires_at)
         SELECT sequence, 'lease_stray', 'endpoint_stray', 1, kind, lane, created_at, created_at FROM jobs WHERE job_id = ?`,
        s.queued,
      ],
    ],
    subject: (s) => s.queued,
    after: async ({ scene }) => {
      expect((await scene.store.stats()).leases_by_kind).toEqual({ command: 3 });
    },
  },
  {
    name: "a lease of another attempt",
    check: "lease",
    damage: (s) => [[`UPDATE leases SET attempt = 7 WHERE ${OF}`, s.leased]],
    subject: (s) => s.leased,
  },
  {
    name: "a lease of another endpoint",
    check: "lease",
    damage: (s) => [[`UPDATE leases SET endpoint_id = 'endpoint_stray' WHERE ${OF}`, s.leased]],
    subject: (s) => s.leased,
  },
  {
    name: "a lease of another kind",
    check: "lease",
    damage: (s) => [[`UPDATE leases SET kind = 'jarvis' WHERE ${OF}`, s.leased]],
    subject: (s) => s.leased,
  },
  {
    name: "an attempt counter that lags behind",
    check: "attempt_counter",
    damage: (s) => [
      ["UPDATE jobs SET attempts = 1 WHERE job_id = ?", s.retried],
      [`UPDATE leases SET attempt = 1 WHERE ${OF}`, s.retried],
    ],
    subject: (s) => s.retried,
    after: async ({ scene, retried }) => {
      expect(await scene.store.job(retried)).toMatchObject({ attempts: 2, state: "running" });
    },
  },
  {
    name: "a count of void attempts that is wrong",
    check: "attempt_counter",
    damage: (s) => [["UPDATE jobs SET voided_attempts = 1 WHERE job_id = ?", s.retried]],
    subject: (s) => s.retried,
  },
  {
    name: "an earlier attempt that was never closed",
    check: "attempt_state",
    damage: (s) => [[`UPDATE attempts SET state = 'running', ended_at = NULL, outcome = NULL WHERE ${OF} AND attempt = 1`, s.retried]],
    subject: (s) => s.retried,
    after: async ({ scene, retried }) => {
      expect(await scene.store.attempt(retried, 1)).toMatchObject({ state: "ended", outcome: { reason: "outcome_unknown" } });
    },
  },
  {
    name: "a leased job whose attempt runs",
    check: "attempt_state",
    damage: (s) => [
      ["UPDATE jobs SET state = 'leased' WHERE job_id = ?", s.running],
      [`UPDATE tasks SET state = 'queued' WHERE ${OF}`, s.running],
    ],
    subject: (s) => s.running,
    after: async ({ scene, running }) => {
      expect((await scene.store.job(running)).state).toBe("running");
      expect((await scene.eventTypes(running)).at(-1)).toBe("job.running");
    },
  },
  {
    name: "an open attempt of a job that has ended",
    check: "attempt_state",
    damage: (s) => [[`UPDATE attempts SET state = 'running', ended_at = NULL, outcome = NULL WHERE ${OF}`, s.ended]],
    subject: (s) => s.ended,
    after: async ({ scene, ended }) => {
      expect(await scene.store.attempt(ended)).toMatchObject({ state: "ended" });
      expect((await scene.store.openAttempts()).map(({ job }) => job.job_id)).not.toContain(ended);
    },
  },
  {
    name: "an edge that is gone",
    check: "used_artifact",
    damage: (s) => [[`DELETE FROM used_artifacts WHERE sequence = 1 AND ${USED_BY}`, s.queued]],
    subject: (s) => s.queued,
    after: async ({ scene, queued }) => {
      const edges = (await scene.store.usedArtifacts(queued, { cursor: 1, limit: 10 })).items;
      expect(edges.map((edge) => [edge.sequence, edge.artifact_id])).toEqual([
        [2, "artifact_2"],
        [3, "artifact_1"],
      ]);
    },
  },
  {
    name: "an edge that nobody has pinned",
    check: "used_artifact",
    damage: () => [
      [
        `INSERT INTO used_artifacts (consumer, producer, artifact, sha256, created_at)
           SELECT producer, producer, artifact, sha256, created_at FROM used_artifacts WHERE sequence = 1`,
      ],
    ],
    subject: (s) => s.ended,
  },
  {
    name: "an edge that says something else than its pin",
    check: "used_artifact",
    damage: (s) => [[`UPDATE used_artifacts SET provenance = '{' WHERE sequence = 2 AND ${USED_BY}`, s.queued]],
    subject: (s) => s.queued,
    after: async ({ scene, queued }) => {
      expect((await scene.store.usedArtifacts(queued, { cursor: 1, limit: 10 })).items.map((edge) => edge.provenance)).toEqual([
        null,
        null,
      ]);
    },
  },
  {
    name: "a key that is not on record",
    check: "idempotency",
    damage: (s) => [["DELETE FROM idempotency WHERE job_id = ?", s.queued]],
    subject: (s) => s.queued,
    after: async ({ scene, queued }) => {
      const { idempotency_key, used_artifact_refs } = await scene.store.job(queued);
      expect(await scene.store.submit(command({ idempotency_key, used_artifact_refs }), "workload")).toMatchObject({
        existing: true,
        job: { job_id: queued },
      });
    },
  },
  {
    name: "a key with another digest",
    check: "idempotency",
    damage: (s) => [["UPDATE idempotency SET job_digest = ? WHERE job_id = ?", "0".repeat(64), s.queued]],
    subject: (s) => s.queued,
  },
  {
    name: "a key whose job is gone",
    check: "idempotency",
    damage: () => [["INSERT INTO idempotency VALUES ('', 'a key', 'job_gone', ?, 'committed')", "0".repeat(64)]],
    subject: () => "job_gone",
  },
  {
    name: "a segment that begins at the wrong place",
    check: "segment",
    damage: (s) => [[`UPDATE segments SET base = 3 WHERE ${OF} AND attempt = 2 AND stream = 'stdout'`, s.retried]],
    subject: (s) => s.retried,
    after: async ({ scene, retried }) => {
      const bases = (await scene.store.segments(retried)).filter((segment) => segment.stream === "stdout").map(({ base }) => base);
      expect(bases).toEqual([0, 10]);
    },
  },
  {
    name: "a segment that is missing",
    check: "segment",
    damage: (s) => [[`DELETE FROM segments WHERE ${OF} AND attempt = 2 AND stream = 'stdout'`, s.retried]],
    subject: (s) => s.retried,
    after: async ({ scene, retried }) => {
      const last = (await scene.store.segments(retried)).at(-1);
      expect(last).toMatchObject({ attempt: 2, stream: "stdout", base: 10, length: 5 });
    },
  },
  {
    name: "a position in a log that its events do not reach",
    check: "log_position",
    damage: (s) => [[`UPDATE segments SET length = 99 WHERE ${OF} AND attempt = 2 AND stream = 'stdout'`, s.retried]],
    subject: (s) => s.retried,
  },
  ...(
    [
      ["fewer kept bytes than were recorded", JSON.stringify({ observed: 4, kept: 4, dropped: 0, truncated: null, complete: true })],
      ["an accounting that cannot be read", '{"kept"'],
    ] as const
  ).map(
    ([name, capture]): Case => ({
      name: `a log with ${name}`,
      check: "log_kept",
      damage: (s) => [[`UPDATE segments SET capture = ? WHERE ${OF} AND stream = 'stdout'`, capture, s.ended]],
      subject: (s) => s.ended,
      after: async ({ scene, ended }) => {
        const kept = { observed: 10, kept: 10, dropped: 0, truncated: null, complete: false };
        expect((await scene.store.segments(ended)).at(-1)).toMatchObject({ stream: "stdout", length: 10, capture: kept });
      },
    }),
  ),
  {
    name: "a waiting job that its own row keeps from being claimed",
    check: "job_index",
    damage: (s) => [["UPDATE jobs SET ready = 0 WHERE job_id = ?", s.queued]],
    subject: (s) => s.queued,
    after: async ({ scene, queued }) => {
      expect((await scene.store.claim(await scene.endpoint(), ROOMY))?.job.job_id).toBe(queued);
    },
  },
  {
    name: "a running job that its own row lets be claimed",
    check: "job_index",
    damage: (s) => [["UPDATE jobs SET ready = 1 WHERE job_id = ?", s.running]],
    subject: (s) => s.running,
    after: async ({ scene, queued }) => {
      expect((await scene.store.claim(await scene.endpoint(), ROOMY))?.job.job_id).toBe(queued);
    },
  },
  {
    name: "an index that lacks rows",
    check: "integrity",
    damage: () => [],
    index: "jobs_ready",
    subject: () => "queue.db",
    after: async ({ scene, queued }) => {
      expect((await scene.store.claim(await scene.endpoint(), ROOMY))?.job).toMatchObject({ job_id: queued, lane: "workload" });
    },
  },
];
