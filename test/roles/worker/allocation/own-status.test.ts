import { describe, expect, test } from "bun:test";
import type { SchedulerJob, SchedulerStatus } from "../../../../src/domain/scheduler.ts";
import { OwnStatus } from "../../../../src/roles/worker/allocation/own-status.ts";
import { blankStatus } from "../../../../src/scheduler/status.ts";

const MARKER = "clio-0123456789abcdef0123456789abcdef-1";
const at = (minute: number): string => new Date(Date.UTC(2026, 10, 30, 12, minute)).toISOString();

const said = (given: Partial<SchedulerStatus> = {}): SchedulerStatus => ({
  ...blankStatus("slurm", "5", null, at(9)),
  ...{ phase: "running", record_found: true, active_record_found: true, name: MARKER, submit_time: at(0) },
  ...given,
});
const ENDED = { phase: "failed", raw_state: "FAILED", active_record_found: false } as const;
const ABSENT = { phase: "unknown", record_found: false, active_record_found: false, name: null, submit_time: null } as const;

const record = (given: Partial<SchedulerJob> = {}): SchedulerJob => ({
  ...{ job_id: "job_0123456789abcdef0123456789abcdef", attempt: 1, task_id: "task_0123456789abcdef0123456789abcdef" },
  ...{ provider: "slurm", marker: MARKER, submission: "submitted", native_id: "5", scheduler_cluster: null },
  ...{ status: null, intended_at: at(0), submitted_at: at(0), observed_at: null, ended_at: null, retained: false },
  ...given,
});

describe("an end that a scheduler has told", () => {
  test("stands when it forgets the job, or its accounts are late", () => {
    const own = new OwnStatus(record());
    expect(own.of(said()).phase).toBe("running");
    own.of(said(ENDED));
    expect(own.of(said({ ...ABSENT, observed_at: at(10) }))).toEqual(said({ ...ENDED, observed_at: at(10) }));
    expect(own.of(said({ phase: "unknown", raw_state: "RUNNING", active_record_found: false })).raw_state).toBe("FAILED");
  });

  test("stands for the next worker, too", () => {
    expect(new OwnStatus(record({ status: said(ENDED) })).of(said(ABSENT)).phase).toBe("failed");
  });

  test("is taken back by a job that waits or runs again", () => {
    const own = new OwnStatus(record({ status: said(ENDED) }));
    expect(own.of(said({ phase: "pending" })).phase).toBe("pending");
    expect(own.of(said(ABSENT))).toMatchObject({ phase: "unknown", record_found: false });
  });
});

describe("a number that another job has", () => {
  const anothers = said({ name: "theirs", submit_time: at(8), nodes: "n7" });

  test("says of ours that it is not there", () => {
    const own = new OwnStatus(record());
    own.of(said());
    expect(own.of(anothers)).toEqual(said({ ...ABSENT }));
    expect(new OwnStatus(record({ status: said() })).of(anothers).record_found).toBe(false);
  });

  test("is told from a job that somebody has renamed by when it was submitted", () => {
    const renamed = said({ name: "renamed" });
    expect(new OwnStatus(record({ status: said() })).of(renamed)).toEqual(renamed);
    // Before anything was heard of ours, clocks may differ.
    expect(new OwnStatus(record()).of(renamed)).toEqual(renamed);
    expect(new OwnStatus(record()).of(said({ name: "theirs", submit_time: at(61) })).record_found).toBe(false);
  });

  test("has no name yet: it may be ours", () => {
    const sketch = said({ name: null, submit_time: at(8) });
    expect(new OwnStatus(record({ status: said() })).of(sketch)).toEqual(sketch);
  });
});
