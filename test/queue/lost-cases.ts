import { type Case, OF } from "./damage-cases.ts";

/** What nothing can put right. */
export const LOST: readonly Case[] = [
  {
    name: "a gap in the events",
    check: "event_sequence",
    damage: (s) => [[`DELETE FROM events WHERE ${OF} AND seq = 2`, s.ended]],
    subject: (s) => s.ended,
  },
  {
    name: "a job without events",
    check: "event_sequence",
    damage: (s) => [[`DELETE FROM events WHERE ${OF}`, s.queued]],
    subject: (s) => s.queued,
  },
  {
    name: "a gap in a task's timeline",
    check: "task_event_sequence",
    damage: (s) => [[`DELETE FROM task_events WHERE ${OF} AND seq = 1`, s.ended]],
  },
  {
    name: "an event payload that is not JSON",
    check: "event_payload",
    damage: (s) => [[`UPDATE events SET payload = '{' WHERE ${OF} AND seq = 1`, s.ended]],
    subject: (s) => s.ended,
  },
  {
    name: "a gap in the progress reports",
    check: "progress_sequence",
    damage: (s) => [[`DELETE FROM progress WHERE ${OF} AND sequence = 1`, s.ended]],
    subject: (s) => s.ended,
  },
  {
    name: "a gap in the artifacts",
    check: "artifacts_sequence",
    damage: (s) => [[`DELETE FROM artifacts WHERE ${OF} AND sequence = 1`, s.ended]],
    subject: (s) => s.ended,
  },
  {
    name: "a gap in the attempts",
    check: "attempt_sequence",
    damage: (s) => [[`DELETE FROM attempts WHERE ${OF} AND attempt = 1`, s.retried]],
    subject: (s) => s.retried,
  },
  {
    name: "an attempt whose record cannot be read",
    check: "attempt_record",
    damage: (s) => [[`UPDATE attempts SET shim = '{}' WHERE ${OF}`, s.running]],
    subject: (s) => s.running,
  },
  {
    name: "a running job whose attempt was never started",
    check: "attempt_state",
    damage: (s) => [[`UPDATE attempts SET state = 'claimed', shim = NULL WHERE ${OF}`, s.running]],
    subject: (s) => s.running,
  },
  {
    name: "a queued job whose attempt may have processes",
    check: "attempt_state",
    damage: (s) => [
      ["UPDATE jobs SET state = 'queued', ready = 1, leased_by = NULL WHERE job_id = ?", s.leased],
      [`DELETE FROM leases WHERE ${OF}`, s.leased],
    ],
    subject: (s) => s.leased,
  },
  {
    name: "an ended job whose record cannot be read",
    check: "record",
    damage: (s) => [["UPDATE jobs SET spec = '{}' WHERE job_id = ?", s.ended]],
    subject: (s) => s.ended,
  },
  {
    name: "a record that is not the one submitted",
    check: "submission_digest",
    damage: (s) => [[`UPDATE jobs SET metadata = '{"altered": true}' WHERE job_id = ?`, s.ended]],
    subject: (s) => s.ended,
  },
  {
    name: "a pin of an artifact that is not there",
    check: "used_artifact",
    damage: (s) => [
      [
        `UPDATE jobs SET used_artifact_refs = '[{"artifact_id":"artifact_none","sha256":"${"a".repeat(64)}","provenance":null}]' WHERE job_id = ?`,
        s.leased,
      ],
    ],
    subject: (s) => s.leased,
  },
  {
    name: "a transform that is not the one recorded",
    check: "transform",
    damage: (s) => [[`UPDATE transforms SET transform = '{}' WHERE ${OF}`, s.queued]],
    subject: (s) => s.queued,
  },
  {
    name: "a key that is bound to another job",
    check: "idempotency",
    damage: (s) => [["UPDATE idempotency SET job_id = ? WHERE job_id = ?", s.ended, s.queued]],
    subject: (s) => s.queued,
  },
  {
    name: "a row whose job is gone",
    check: "foreign_key",
    damage: () => [["INSERT INTO progress (job, sequence, progress_id, label, metadata, created_at) VALUES (999, 1, 'p', 'l', '{}', '')"]],
    subject: () => "progress",
  },
];
