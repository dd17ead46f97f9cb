import { expect, test } from "bun:test";
import type { SchedulerStatus } from "../../../src/domain/scheduler.ts";
import { ExecutionRecord, readDocument } from "../../../src/execution/jarvis/documents.ts";
import { pipelineMarker } from "../../../src/roles/worker/engines/jarvis/allocation.ts";
import { allocationEnd, allocationVerdict } from "../../../src/roles/worker/engines/jarvis/allocation-verdict.ts";
import { blankStatus } from "../../../src/scheduler/status.ts";

const ID = "jarvis_0123456789abcdef0123456789abcdef";

function status(phase: SchedulerStatus["phase"], raw_state: string, more: Partial<SchedulerStatus> = {}): SchedulerStatus {
  return {
    ...blankStatus("slurm", "41", null, "2030-01-02T03:04:05.678Z"),
    phase,
    raw_state,
    record_found: true,
    ...more,
  };
}

function record(state: string, changes: object = {}): ExecutionRecord {
  const document = {
    ...{ schema_version: "jarvis.execution.record.v1", execution_id: ID, pipeline_id: "demo", mode: "scheduler" },
    ...{ scheduler_provider: "slurm", scheduler_native_id: "41", cluster: "c", submitted: true, metadata: {} },
    ...{ created_at: "2030-01-02T03:04:06.123456Z", updated_at: "2030-01-02T03:05:00.000001Z", error: null },
    ...{
      state,
      terminal: ["completed", "failed", "canceled"].includes(state),
      return_code: state === "completed" ? 0 : state === "failed" ? 1 : null,
    },
    ...changes,
  };
  const read = readDocument(ExecutionRecord, JSON.stringify(document), ID);
  if ("refused" in read) throw new Error(read.refused);
  return read.document;
}

test.each<[string, SchedulerStatus | null, ExecutionRecord | null, string]>([
  ["completed, and so says JARVIS", status("completed", "COMPLETED"), record("completed"), "completed"],
  ["completed, and JARVIS has failed", status("completed", "COMPLETED"), record("failed", { error: "counter exited 9" }), "engine_failed"],
  ["completed, and JARVIS never came to an end", status("completed", "COMPLETED"), record("running"), "engine_failed"],
  ["completed, and there is no record", status("completed", "COMPLETED"), null, "engine_failed"],
  ["cancelled, and JARVIS says completed", status("canceled", "CANCELLED by 0"), record("completed"), "canceled"],
  ["cancelled while it waited", status("canceled", "CANCELLED"), record("canceled"), "canceled"],
  ["failed, and the record stays submitted", status("failed", "FAILED", { exit_code: 1 }), record("submitted"), "engine_failed"],
  ["failed, and JARVIS says completed", status("failed", "NODE_FAIL"), record("completed"), "engine_failed"],
  ["out of time", status("failed", "TIMEOUT"), record("running"), "timeout"],
  ["nowhere, and JARVIS says completed", null, record("completed"), "completed"],
  ["nowhere, and JARVIS says failed", null, record("failed"), "engine_failed"],
  ["nowhere, and JARVIS does not know either", null, record("running"), "outcome_unknown"],
])("%s", (_what, said, jarvis, reason) => {
  expect(allocationVerdict(said, jarvis, false).outcome.reason).toBe(reason as "completed");
});

test("a record that SLURM contradicts, or that stands alone, is said to be untrusted", () => {
  const told = (said: SchedulerStatus | null, jarvis: ExecutionRecord) =>
    allocationVerdict(said, jarvis, false).events.map(({ event_type }) => event_type);
  expect(told(status("canceled", "CANCELLED"), record("completed"))).toEqual(["runtime.metadata_untrusted"]);
  expect(told(null, record("completed"))).toEqual(["runtime.metadata_untrusted"]);
  expect(told(status("completed", "COMPLETED"), record("completed"))).toEqual([]);
});

test.each([
  ["by the scheduler", "2030-01-02T03:05:06.000Z", "completed", "2030-01-02T03:05:06.000Z"],
  ["by JARVIS where the scheduler does not say", null, "completed", "2030-01-02T03:05:00.000Z"],
  ["not before its submission had ended, whatever another clock says", "2030-01-02T02:00:00.000Z", "completed", "2030-01-02T03:04:10.000Z"],
  ["not in the future", "2030-01-02T05:00:00.000Z", "completed", "2030-01-02T03:06:00.000Z"],
  ["now, where nobody says", null, "running", "2030-01-02T03:06:00.000Z"],
])("it ended %s", (_how, end_time, state, expected) => {
  const told = { status: status("completed", "COMPLETED", { end_time }), record: record(state), now: "2030-01-02T03:06:00.000Z" };
  expect(allocationEnd("2030-01-02T03:04:10.000Z", told)).toBe(expected);
});

test("a pipeline's own name stands before the marker where it can", () => {
  const marker = "clio-0123456789abcdef0123456789abcdef-1";
  const of = (name: string | null) => pipelineMarker("job_0123456789abcdef0123456789abcdef", 1, name);
  expect(of(null)).toBe(marker);
  expect(of("demo_1")).toBe(`demo_1.${marker}`);
  for (const name of ["a b", "$(id)", "x".repeat(65), ""]) expect(of(name)).toBe(marker);
});
