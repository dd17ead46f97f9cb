import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { SchedulerStatus } from "../../../../src/domain/scheduler.ts";
import type { ExitRecord } from "../../../../src/execution/spool-records.ts";
import { concluded, type Evidence } from "../../../../src/roles/worker/allocation/conclusion.ts";
import { blankStatus } from "../../../../src/scheduler/status.ts";
import { temporaryDirectory } from "../../../runner/temporary.ts";

const TIMES = { lag: 60_000, why: 30_000 };
const status = (phase: SchedulerStatus["phase"], raw_state: string): SchedulerStatus => ({
  ...blankStatus("slurm", "41", null, "2030-01-02T03:04:05.678Z"),
  ...{ phase, raw_state, record_found: true, active_record_found: phase === "running" },
});
const STREAM = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: null };

/** What a shim leaves that got TERM and has seen no cancel.json. */
const told = (reason: ExitRecord["outcome"]["reason"], kept = 0): ExitRecord =>
  ({
    outcome: { reason, exit_code: 0, signal: null, message: "its shim was asked to end", residual: [] },
    asked_to_end: true,
    streams: { stdout: { ...STREAM, kept, observed: kept }, stderr: STREAM },
  }) as unknown as ExitRecord;

const came = (since: number, isBefore = true): Evidence["came"] => ({ since, isBefore: () => isBefore });

const around = (directory: string, more: Partial<Evidence>): Evidence => ({
  ...{
    directory,
    came: came(0),
    times: TIMES,
    record: { provider: "slurm" },
    status: null,
    request: null,
    limitSeconds: null,
  },
  ...more,
});

const reasonOf = (found: ReturnType<typeof concluded>): unknown => ("obstacle" in found ? found.obstacle : found.outcome.reason);
const WAITS = expect.stringContaining("ended the allocation is not known yet");

test.each([
  ["the scheduler has not ended it yet", status("running", "RUNNING"), "signaled", WAITS],
  ["the scheduler has not said anything", null, "signaled", WAITS],
  ["and it has ended", status("failed", "FAILED"), "signaled", "canceled"],
  ["by a code of its own", status("failed", "FAILED"), "exit_nonzero", "canceled"],
  ["it had ended well before", status("completed", "COMPLETED"), "completed", "completed"],
  ["its time was over", status("failed", "TIMEOUT"), "signaled", "timeout"],
] as const)("a shim that our TERM has reached before cancel.json was canceled: %s", (_when, said, reason, expected) => {
  using place = temporaryDirectory();
  const evidence = around(place.path, { status: said, request: { cancel_scheduler: true } });
  expect(reasonOf(concluded(told(reason), evidence))).toEqual(expected);
});

test("without a cancel of ours it is the scheduler's", () => {
  using place = temporaryDirectory();
  expect(reasonOf(concluded(told("signaled"), around(place.path, { status: status("failed", "PREEMPTED") })))).toBe("signaled");
  expect(reasonOf(concluded(told("signaled"), around(place.path, { status: status("canceled", "CANCELLED") })))).toBe("canceled");
});

test("where it is queued again, that is said, unless it is an older word; and the end is what it was", () => {
  using place = temporaryDirectory();
  const look = (since: number, isBefore = true) =>
    concluded(told("signaled"), around(place.path, { status: status("pending", "PENDING"), came: came(since, isBefore) }));
  expect(look(29_999)).toEqual({ obstacle: null });
  const said = expect.stringContaining("PENDING: it is queued there again");
  expect(look(30_000)).toMatchObject({ outcome: { reason: "signaled", message: said } });
  expect(look(30_000, false)).toEqual(told("signaled"));
});

test("output that a file server does not show yet is waited for, and not for ever", () => {
  using place = temporaryDirectory();
  const exit = { ...told("exit_nonzero", 5), asked_to_end: undefined };
  const look = (since: number) => reasonOf(concluded(exit, around(place.path, { came: came(since) })));
  const late = expect.stringContaining("not to be seen here yet");
  expect(look(0)).toEqual(late);
  fs.writeFileSync(path.join(place.path, "stdout.log"), "abc");
  expect(look(59_999)).toEqual(late);
  expect(look(60_000)).toBe("exit_nonzero");
  fs.appendFileSync(path.join(place.path, "stdout.log"), "de");
  expect(look(1)).toBe("exit_nonzero");
});
