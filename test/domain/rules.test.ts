import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { ERRORS, EXIT, errorRule, isRelayError, RelayError } from "../../src/domain/errors.ts";
import { JOB_STATES, JobSubmission, type Outcome, type OutcomeReason } from "../../src/domain/job.ts";
import { verdict } from "../../src/domain/retry.ts";
import { canTransition, isTerminal, JOB_TRANSITIONS } from "../../src/domain/transitions.ts";

const outcome = (reason: OutcomeReason): Outcome => ({ reason, exit_code: null, signal: null, message: "", residual: [] });
const job = (retries: number, canceling = false) =>
  ({
    spec: v.parse(JobSubmission, { cluster: "c", kind: "command", spec: { argv: ["true"], retries } }).spec,
    cancellation_request: canceling
      ? { requested_at: "x", previous_state: "running", cancel_scheduler: false, acknowledged_at: null }
      : null,
  }) as Parameters<typeof verdict>[0];

describe("transitions", () => {
  test("terminal states have no way out, all others do", () => {
    for (const state of JOB_STATES) {
      const exits = JOB_TRANSITIONS.filter(({ from }) => from === state);
      expect(exits.length === 0).toBe(isTerminal(state));
    }
  });

  test("every state can be reached from queued", () => {
    const reached = new Set(["queued"]);
    for (let grew = true; grew; ) {
      const before = reached.size;
      for (const { from, to } of JOB_TRANSITIONS) if (reached.has(from)) reached.add(to);
      grew = reached.size > before;
    }
    expect([...reached].sort()).toEqual([...JOB_STATES].sort());
  });

  test("nothing else is allowed", () => {
    expect(canTransition("succeeded", "failed")).toBe(false);
    expect(canTransition("queued", "running")).toBe(false);
    expect(canTransition("running", "leased")).toBe(false);
  });
});

describe("verdict", () => {
  test("a failure is tried again while retries are left, with doubling delays", () => {
    expect(verdict(job(8), 1, outcome("exit_nonzero"))).toEqual({ state: "queued", delay_seconds: 1 });
    expect(verdict(job(8), 2, outcome("signaled"))).toEqual({ state: "queued", delay_seconds: 2 });
    expect(verdict(job(8), 8, outcome("outcome_unknown"))).toEqual({ state: "queued", delay_seconds: 60 });
    expect(verdict(job(8), 9, outcome("exit_nonzero")).state).toBe("failed");
    expect(verdict(job(0), 1, outcome("outcome_unknown")).state).toBe("failed");
  });

  test("nothing is tried again after somebody asked to cancel", () => {
    expect(verdict(job(8, true), 1, outcome("exit_nonzero")).state).toBe("failed");
    expect(verdict(job(8, true), 1, outcome("canceled")).state).toBe("canceled");
    expect(verdict(job(8, true), 1, outcome("completed")).state).toBe("succeeded");
  });

  test("an engine's own failure is final", () => {
    expect(verdict(job(8), 1, outcome("engine_failed")).state).toBe("failed");
  });
});

describe("the error table", () => {
  test("every exit code is one of the stated ones", () => {
    const known = new Set<number>(Object.values(EXIT));
    for (const rule of Object.values(ERRORS)) expect(known.has(rule.exit)).toBe(true);
  });

  test("an unknown code from elsewhere counts as an internal error", () => {
    expect(errorRule("no_such_code")).toBe(ERRORS.internal_error);
    expect(errorRule("toString")).toBe(ERRORS.internal_error);
  });

  test("errors are told apart by code", () => {
    const error = new RelayError("job_not_found", "x");
    expect(isRelayError(error)).toBe(true);
    expect(isRelayError(error, "job_not_found")).toBe(true);
    expect(isRelayError(error, "not_found")).toBe(false);
    expect(isRelayError(new Error("job_not_found"))).toBe(false);
  });
});

describe("submissions", () => {
  const submission = (spec: unknown) => v.safeParse(JobSubmission, { cluster: "c", kind: "command", spec });

  test("defaults are filled in", () => {
    expect(submission({ argv: ["true"] }).output).toMatchObject({
      spec: { workdir: null, env: {}, login: false, timeout_seconds: null, outputs: [], retries: 0 },
      used_artifact_refs: [],
      owner_session_id: null,
    });
  });

  test.each([
    ["neither argv nor script", {}],
    ["both argv and script", { argv: ["a"], script: "b" }],
    ["an empty program name", { argv: [""] }],
    ["NUL in an argument", { argv: ["a", "b\0c"] }],
    ["arguments that are too long", { argv: ["a", "x".repeat(600_000)] }],
    ["a relative working directory", { argv: ["a"], workdir: "x" }],
    ["a relay credential as variable", { argv: ["a"], env: { CLIO_RELAY_API_TOKEN: "x" } }],
    ["a variable name that is none", { argv: ["a"], env: { "A=B": "x" } }],
    ["an output that leaves the working directory", { argv: ["a"], outputs: ["../x"] }],
    ["an absolute output", { argv: ["a"], outputs: ["/etc/passwd"] }],
    ["a timeout of zero", { argv: ["a"], timeout_seconds: 0 }],
    ["a timeout that is no number", { argv: ["a"], timeout_seconds: Number.POSITIVE_INFINITY }],
    ["too many retries", { argv: ["a"], retries: 101 }],
    ["an unknown member", { argv: ["a"], shell: true }],
  ])("%s is refused", (_name, spec) => {
    expect(submission(spec).success).toBe(false);
  });

  test("names with newlines, quotes and other scripts are taken as they are", () => {
    const argv = ["échø", "a\nb", "'\"`$(x)", "日本"];
    expect(submission({ argv, env: { A: "x\ny" } }).output).toMatchObject({ spec: { argv, env: { A: "x\ny" } } });
  });
});
