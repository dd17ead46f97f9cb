import { describe, expect, test } from "bun:test";
import { statusFields } from "../../../src/cli/job/status.ts";
import { endLine, withReason } from "../../../src/cli/print/outcome-text.ts";
import { styleFor } from "../../../src/cli/print/style.ts";
import { readEnvironment } from "../../../src/config/environment.ts";
import type { Attempt } from "../../../src/domain/attempt.ts";
import type { Job, Outcome } from "../../../src/domain/job.ts";
import type { JobStatus } from "../../../src/domain/views.ts";
import { transform } from "../../api/history.ts";
import { Captured } from "../captured-io.ts";

const at = (seconds: number): string => new Date(seconds * 1_000).toISOString();
const outcome = (reason: Outcome["reason"], message: string): Outcome => ({ reason, message, exit_code: null, signal: null, residual: [] });

/** What a person reads of a job, by name. */
function shown(job: Partial<Job>, attempt: Partial<Attempt> | null, more: Partial<JobStatus> = {}): Record<string, unknown> {
  const status = {
    job: {
      job_id: "job_1",
      kind: "command",
      spec: { argv: ["true"], workdir: "/w" },
      last_error: null,
      created_at: at(0),
      updated_at: at(90),
      outcome: null,
      cancellation_request: null,
      not_before: null,
      ...job,
    },
    attempt: attempt === null ? null : { attempt: 1, state: "ended", started_at: null, ended_at: null, process: null, ...attempt },
    relay_queue: { position: job.state === "queued" ? 1 : null },
    inputs: [],
    transform: null,
    ...more,
    progress: [],
    logs: [],
  };
  return Object.fromEntries(statusFields(status as never, 100_000).filter(([, value]) => value != null));
}

describe("a job that is over", () => {
  test("shows when it ended and how long its last attempt took", () => {
    const fields = shown({ state: "succeeded" }, { started_at: at(10), ended_at: at(85) });
    expect(fields).toMatchObject({ ended: `${at(85)} (15s ago)`, duration: "1m 15s" });
  });

  test("that was a pipeline in an allocation took as long as that ran, and not from its submission on", () => {
    const attempt = { started_at: at(10), ended_at: at(85) };
    const there = (start_time: string | null) => [{ attempt: 1, native_id: "7", status: { start_time }, ended_at: at(85) }] as never;
    const pipeline = { state: "succeeded", kind: "jarvis", spec: { pipeline_yaml: "name: p" } } as never;
    expect(shown(pipeline, attempt, { scheduler: there(at(60)) })["duration"]).toBe("25s");
    expect(shown(pipeline, attempt, { scheduler: there(null) })["duration"]).toBe("1m 15s");
    expect(shown({ state: "succeeded" }, attempt, { scheduler: there(at(60)) })["duration"]).toBe("1m 15s");
  });

  test("that was a pipeline tells a word of JARVIS' that is no end from one that is", () => {
    const said = (state: string) => ({ jarvis: { execution_id: "jarvis_1", said: { pipeline_id: "p", state } } }) as never;
    const line = (state: Job["state"], word: string) => shown({ state }, null, said(word))["JARVIS"];
    expect(line("running", "running")).toBe("jarvis_1, pipeline p: running");
    expect(line("canceled", "running")).toBe("jarvis_1, pipeline p: running was its last word before the end");
    expect(line("failed", "submitted")).toBe("jarvis_1, pipeline p: submitted was its last word before the end");
    for (const word of ["completed", "failed", "canceled"]) expect(line("failed", word)).toBe(`jarvis_1, pipeline p: ${word}`);
  });

  test("and never started shows no duration", () => {
    const fields = shown({ state: "canceled" }, null);
    expect(fields["ended"]).toBe(`${at(90)} (10s ago)`);
    expect(fields).not.toHaveProperty("duration");
  });

  test("is not one that waits for its next attempt", () => {
    const fields = shown({ state: "queued" }, { started_at: at(10), ended_at: at(85) });
    expect(fields).not.toHaveProperty("ended");
    expect(fields).not.toHaveProperty("duration");
  });
});

test("a job whose transform is on record says whether it can be run again", () => {
  expect(shown({ state: "succeeded" }, null, { transform })["transform"]).toBe("re-runnable: it draws random numbers");
  expect(shown({ state: "succeeded" }, null)).not.toHaveProperty("transform");
});

test("a job that was given no directory says where it begins", () => {
  const spec = { argv: ["true"], workdir: null };
  expect(shown({ state: "running", spec } as never, null)["runs in"]).toBe("the home directory of the worker's user");
});

test("between two attempts it shows why the last one failed and when the next one comes, and no place in the lane before", () => {
  const failed = { state: "queued", last_error: "exited with code 3" } as const;
  const waiting = shown({ ...failed, not_before: at(130) }, { started_at: at(10), ended_at: at(85) });
  expect(waiting).toMatchObject({ "last failure": "exited with code 3", "next try": at(130), what: "true", "runs in": "/w" });
  expect(waiting).not.toHaveProperty("position");
  const due = shown({ ...failed, not_before: at(99) }, { started_at: at(10), ended_at: at(85) });
  expect(due).toMatchObject({ "last failure": "exited with code 3", position: "1 in its lane" });
  expect(due).not.toHaveProperty("next try");
  expect(shown({ state: "failed", last_error: "exited with code 3" }, null)).not.toHaveProperty("last failure");
});

test("a message that only repeats the reason is not said twice", () => {
  expect(shown({ state: "canceled", outcome: outcome("canceled", "canceled") }, null)["outcome"]).toBe("canceled");
  expect(shown({ state: "failed", outcome: outcome("timeout", "ended after 3s") }, null)["outcome"]).toBe("timeout: ended after 3s");
  expect(withReason("failed", "two\nlines")).toBe("failed: two\\nlines");
  const style = styleFor(new Captured(), readEnvironment({}, "/"));
  const line = (state: Job["state"], end: Outcome | null) => endLine(style, { job_id: "job_1", state, outcome: end });
  expect(line("canceled", outcome("canceled", "canceled"))).toBe("job_1 canceled");
  expect(line("failed", outcome("exit_nonzero", "exited with code 1"))).toBe("job_1 failed: exited with code 1");
  expect(line("running", null)).toBe("job_1 running");
});
