import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../../src/domain/job.ts";
import { ExecutionRecord, Handle, readDocument } from "../../../src/execution/jarvis/documents.ts";
import { executionIdOf } from "../../../src/execution/jarvis/execution-id.ts";
import type { Answered } from "../../../src/execution/jarvis/questions.ts";
import { directVerdict, type Evidence } from "../../../src/execution/jarvis/verdict.ts";

const ID = "jarvis_0123456789abcdef0123456789abcdef";
const exit = (reason: Outcome["reason"], exit_code: number | null = null): Outcome => ({
  ...{ reason, exit_code, signal: null, message: `as the shim says: ${reason}`, residual: [] },
});
const COMPLETED = exit("completed", 0);
const FAILED = exit("exit_nonzero", 1);

function record(changes: object): Answered<ExecutionRecord> {
  const document = {
    ...{ schema_version: "jarvis.execution.record.v1", execution_id: ID, pipeline_id: "demo", pipeline_name: "demo", mode: "direct" },
    ...{ scheduler_provider: null, scheduler_native_id: null, cluster: null, submitted: false, terminal: true, metadata: {} },
    ...{ created_at: "2030-01-02T03:04:06.123456Z", updated_at: "2030-01-02T03:05:00.000001Z", return_code: 0, error: null },
    ...changes,
  };
  return { kind: "read", read: readDocument(ExecutionRecord, JSON.stringify(document), ID) };
}
const handle = (executionId = ID) =>
  readDocument(
    Handle,
    JSON.stringify({
      ...{ schema_version: "jarvis.execution.handle.v1", execution_id: executionId, pipeline_id: "demo", mode: "direct" },
      ...{ scheduler_provider: null, scheduler_native_id: null, cluster: null },
    }),
    ID,
  );

const verdict = (evidence: Partial<Evidence>) =>
  directVerdict({
    ...{ executionId: ID, exit: COMPLETED, startedAt: "2030-01-02T03:04:05.678Z", handle: handle(), lastLine: "Error: words", mute: [] },
    record: record({ state: "completed" }),
    ...evidence,
  });
const ended = (evidence: Partial<Evidence>) => verdict(evidence).outcome.reason;
const told = (evidence: Partial<Evidence>) => verdict(evidence).events.map(({ event_type }) => event_type);
const FAILURE = record({ state: "failed", return_code: 1, error: "Pipeline startup failed at package 'c1': counter exited 9" });
const NONE = { kind: "none", said: "Error: no such file" } as const;
const SILENT = { kind: "silent", said: "it did not end within its time" } as const;

describe("a run on the worker's host", () => {
  test("is completed where exit code, handle and record say so", () => {
    expect(verdict({})).toEqual({ outcome: COMPLETED, events: [] });
  });

  test("has failed where its record says so, whatever the exit code", () => {
    for (const one of [COMPLETED, FAILED]) expect(ended({ exit: one, record: FAILURE })).toBe("engine_failed");
    expect(verdict({ exit: FAILED, record: FAILURE }).outcome.message).toContain("package 'c1': counter exited 9");
  });

  test("was refused where there is no record of it", () => {
    expect(ended({ exit: FAILED, record: NONE })).toBe("engine_failed");
    expect(told({ exit: FAILED, record: NONE })).toEqual(["jarvis.dispatch_refused"]);
    expect(verdict({ exit: FAILED, record: NONE }).outcome.message).toContain("Error: words");
  });

  test("is another's where its record is older than it", () => {
    const older = { state: "completed", created_at: "2030-01-02T03:00:00.000000Z" };
    expect(ended({ exit: FAILED, record: record(older) })).toBe("engine_failed");
    expect(ended({ record: record(older) })).toBe("engine_failed");
  });

  test("is no success without a handle of its own id, unless only the record can be had", () => {
    expect(ended({ handle: handle("another") })).toBe("engine_failed");
    expect(ended({ handle: readDocument(Handle, "JARVIS says goodbye", ID) })).toBe("engine_failed");
    expect(ended({ handle: null, record: NONE })).toBe("engine_failed");
    expect(ended({ handle: null })).toBe("completed");
    expect(ended({ record: SILENT })).toBe("completed");
    expect(told({ record: SILENT })).toEqual(["runtime.metadata_untrusted"]);
  });

  test("is no success while its record does not say so", () => {
    expect(ended({ record: record({ state: "running", terminal: false, return_code: null }) })).toBe("engine_failed");
  });

  test("whose shim was killed ended as its record says, where that is terminal", () => {
    const lost = exit("outcome_unknown");
    expect(ended({ exit: lost })).toBe("completed");
    expect(ended({ exit: lost, record: FAILURE })).toBe("engine_failed");
    expect(ended({ exit: lost, record: record({ state: "running", terminal: false, return_code: null }) })).toBe("outcome_unknown");
    expect(ended({ exit: lost, record: NONE })).toBe("outcome_unknown");
  });

  test("that was ended from outside ended so, whatever JARVIS says", () => {
    for (const reason of ["canceled", "timeout", "signaled", "spawn_failed", "env_setup_failed"] as const)
      expect(ended({ exit: exit(reason) })).toBe(reason);
  });

  test("of a package that hides exit codes says so", () => {
    expect(ended({ mute: ["sh1"] })).toBe("completed");
    expect(told({ mute: ["sh1"] })).toEqual(["runtime.metadata_untrusted"]);
    expect(verdict({ mute: ["sh1"] }).outcome.message).toContain("sh1");
  });
});

describe("a document", () => {
  const read = (document: unknown) => readDocument(ExecutionRecord, JSON.stringify(document), ID);
  const refused = (document: unknown) => {
    const found = read(document);
    return "refused" in found ? found.refused : null;
  };
  const good = JSON.parse((record({ state: "running", terminal: false }) as { read: { text: string } }).read.text) as object;

  test("keeps members that are not known", () => {
    expect(read({ ...good, later: { a: 1 } })).toMatchObject({ document: { state: "running", later: { a: 1 } } });
  });

  test("of another version, another execution or another shape is refused by name", () => {
    expect(refused({ ...good, schema_version: "jarvis.execution.record.v2" })).toContain("jarvis.execution.record.v2");
    expect(refused({ ...good, execution_id: "another" })).toContain("another");
    expect(refused({ ...good, created_at: "yesterday" })).toContain("created_at");
    expect(refused([])).not.toBeNull();
    expect(readDocument(ExecutionRecord, "{", ID)).toEqual({ refused: "it is not JSON", text: "{" });
  });
});

test("an execution id is the job's own, and a name that JARVIS takes", () => {
  const job = { cluster: "c", idempotency_key: "k", job_id: "job_1" };
  expect(executionIdOf(job)).toMatch(/^jarvis_[0-9a-f]{32}$/);
  expect(executionIdOf(job)).toBe(executionIdOf({ ...job }));
  for (const other of [{ cluster: "d" }, { idempotency_key: "l" }, { job_id: "job_2" }])
    expect(executionIdOf({ ...job, ...other })).not.toBe(executionIdOf(job));
  // SHA-256 of {"cluster":"c","job_id":"job_1","key":"k"}
  expect(executionIdOf(job)).toBe(
    `jarvis_${new Bun.CryptoHasher("sha256").update('{"cluster":"c","job_id":"job_1","key":"k"}').digest("hex").slice(0, 32)}`,
  );
});
