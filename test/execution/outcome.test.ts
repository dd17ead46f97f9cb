import { expect, test } from "bun:test";
import * as v from "valibot";
import { Outcome } from "../../src/domain/job.ts";
import { outcomeOf, shimFailed } from "../../src/execution/shim/outcome.ts";

test("an outcome is valid however many processes are left, and whatever the error", () => {
  const pids = Array.from({ length: 100_000 }, (_, i) => i + 1);
  const outcomes = [
    outcomeOf("timeout", { code: null, signal: "SIGKILL" }, { timeout_seconds: 1 }, pids),
    shimFailed(new Error("x".repeat(100_000)), pids),
  ];
  for (const outcome of outcomes) {
    expect(v.is(Outcome, outcome)).toBe(true);
    expect(outcome.residual).toEqual(pids.slice(0, 1_000));
  }
  expect(outcomes[0]!.message).toContain("100000 of its processes");
  expect(shimFailed("why")).toEqual({
    reason: "outcome_unknown",
    exit_code: null,
    signal: null,
    message: "the shim failed: why",
    residual: [],
  });
});
