import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { slotsOf } from "../../src/domain/endpoint.ts";
import { JobSubmission, laneOf } from "../../src/domain/job.ts";
import { hasEnded, markerOf, SCHEDULER_PHASES } from "../../src/domain/scheduler.ts";

const submission = (spec: unknown, kind = "command") => v.safeParse(JobSubmission, { cluster: "c", kind, spec });

describe("a command job for a scheduler", () => {
  test("has a lane of its own", () => {
    expect(laneOf(v.parse(JobSubmission, { cluster: "c", kind: "command", spec: { argv: ["a"], scheduler: {} } }))).toBe("scheduler");
    expect(laneOf(v.parse(JobSubmission, { cluster: "c", kind: "command", spec: { argv: ["a"] } }))).toBe("workload");
    expect(laneOf(v.parse(JobSubmission, { cluster: "c", kind: "jarvis", spec: { pipeline_name: "ior" } }))).toBe("workload");
  });

  test("says of what it does not name that nothing is asked", () => {
    expect(submission({ argv: ["a"], scheduler: { nodes: 2 } }).output).toMatchObject({
      spec: { scheduler: { provider: null, nodes: 2, tasks: null, exclusive: false, options: [], directives: false } },
    });
    // The digest of a job that has none is the one that it always had.
    expect(submission({ argv: ["a"] }).output).not.toHaveProperty("spec.scheduler");
  });

  test.each([
    ["a timeout of the relay's beside the scheduler's", { argv: ["a"], timeout_seconds: 5, scheduler: {} }, "time_limit_seconds"],
    ["directives without a script", { argv: ["a"], scheduler: { directives: true } }, "script"],
    ["a node too few", { argv: ["a"], scheduler: { nodes: 0 } }, "1"],
    ["no memory", { argv: ["a"], scheduler: { memory_bytes: 0 } }, "1"],
    ["a partition that is an option", { argv: ["a"], scheduler: { partition: "--help" } }, "one word"],
    ["a partition with a line break", { argv: ["a"], scheduler: { partition: "a\nb" } }, "one word"],
    ["a name that a shell would read", { argv: ["a"], scheduler: { name: "$(id)" } }, "letters and digits"],
    ["an option that is none", { argv: ["a"], scheduler: { options: ["rm"] } }, "option"],
    ["a scheduler that nobody knows", { argv: ["a"], scheduler: { provider: "pbs" } }, "slurm"],
    ["a member that nobody knows", { argv: ["a"], scheduler: { time: "1:00" } }, "time"],
  ])("%s is refused", (_name, spec, words) => {
    const { success, issues } = submission(spec);
    expect(success).toBe(false);
    expect(issues?.[0].message).toContain(words);
  });

  test("no other kind asks a scheduler", () => {
    expect(submission({ pipeline_name: "ior", scheduler: {} }, "jarvis").success).toBe(false);
  });
});

test("a marker names the attempt, and begins with the user's name where there is one", () => {
  expect(markerOf(`job_${"0a".repeat(16)}`, 3, null)).toBe(`clio-${"0a".repeat(16)}-3`);
  expect(markerOf(`job_${"0a".repeat(16)}`, 3, "train")).toBe(`train.clio-${"0a".repeat(16)}-3`);
});

test("three phases are an end", () => {
  expect(SCHEDULER_PHASES.filter(hasEnded)).toEqual(["completed", "failed", "canceled"]);
});

test("each lane has its slots", () => {
  const capacity = { concurrency: 5, control_query_concurrency: 2, kind_concurrency: {}, scheduler_jobs: 40 };
  expect([slotsOf(capacity, "workload"), slotsOf(capacity, "control"), slotsOf(capacity, "scheduler")]).toEqual([3, 2, 40]);
});
