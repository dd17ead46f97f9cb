import { afterAll, describe, expect, test } from "bun:test";
import { JOB_KINDS, LANES } from "../../src/domain/job.ts";
import { JOB_OF_SEQUENCE, NEXT_JOB } from "../../src/queue/sqlite/claim.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { PINNED } from "../../src/queue/sqlite/lineage.ts";
import { ACTIVE_JOBS, READY_AHEAD } from "../../src/queue/sqlite/listing.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const directory = temporaryDirectory();
const { database } = openDatabase(directory.path);
afterAll(() => {
  database.close();
  directory[Symbol.dispose]();
});

/** What SQLite is going to do, step by step (sqlite.org/eqp.html). */
function plan(sql: string, parameters: number): string[] {
  const statement = database.prepare<{ detail: string }, null[]>(`EXPLAIN QUERY PLAN ${sql}`);
  const steps = statement.all(...Array.from({ length: parameters }, () => null)).map(({ detail }) => detail);
  statement.finalize();
  return steps;
}

describe("what is asked often costs the same whatever the backlog or the history", () => {
  const steps = plan(NEXT_JOB, LANES.length + JOB_KINDS.length);

  test("a claim looks at jobs by searching: one for the head of a kind, one by sequence", () => {
    const ofJobs = steps.filter((step) => /\b(jobs|waiting)\b/.test(step));
    expect(ofJobs).toEqual(["SEARCH waiting USING COVERING INDEX jobs_ready (lane=? AND kind=? AND ready=?)"]);
    expect(plan(JOB_OF_SEQUENCE, 1)).toEqual(["SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"]);
  });

  test("what a claim scans is bounded by the slots, and nothing of jobs is sorted", () => {
    const scanned = steps.filter((step) => step.startsWith("SCAN "));
    expect(scanned.filter((step) => !/CONSTANT ROWS?$/.test(step))).toEqual(["SCAN leases"]);
    expect(steps.filter((step) => step.includes("ORDER BY"))).toEqual([]);
  });

  test("all pins of a submission are found by one statement, which searches by their ids", () => {
    expect(plan(PINNED, 1)).toEqual([
      expect.stringMatching(/^SCAN pin VIRTUAL TABLE/),
      expect.stringMatching(/^SEARCH a USING INDEX \S+ \(artifact_id=\?\)$/),
      "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)",
    ]);
  });

  test("a list of active jobs goes through these alone", () => {
    expect(plan(ACTIVE_JOBS.ascending, 2)).toEqual(["SEARCH jobs USING INDEX jobs_active (sequence>?)"]);
    expect(plan(ACTIVE_JOBS.descending, 2)).toEqual(["SEARCH jobs USING INDEX jobs_active (sequence<?)"]);
  });

  test("the number of jobs ahead is read from the index alone", () => {
    expect(plan(READY_AHEAD, 2)).toEqual(["SEARCH jobs USING COVERING INDEX jobs_ready (lane=? AND kind=? AND ready=? AND sequence<?)"]);
  });
});
