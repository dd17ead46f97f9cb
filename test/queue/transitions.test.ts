import { afterAll, describe, expect, test } from "bun:test";
import { isRelayError } from "../../src/domain/errors.ts";
import { JOB_STATES, type JobState } from "../../src/domain/job.ts";
import { canTransition } from "../../src/domain/transitions.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import type { Writing } from "../../src/queue/sqlite/access.ts";
import { Counts } from "../../src/queue/sqlite/counts.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { HeldAttempts } from "../../src/queue/sqlite/held-attempts.ts";
import { JobEdit, taskStateOf } from "../../src/queue/sqlite/job-edit.ts";
import type { JobHead } from "../../src/queue/sqlite/job-rows.ts";
import { Statements } from "../../src/queue/sqlite/statements.ts";
import { SteadyTime } from "../../src/queue/sqlite/steady-time.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const directory = temporaryDirectory();
const { database } = openDatabase(directory.path);
const sql = new Statements(database);
afterAll(() => {
  sql.finalize();
  database.close();
  directory[Symbol.dispose]();
});

const headIn = (state: JobState): JobHead => ({
  sequence: 1,
  job_id: "job_1",
  cluster: "local",
  kind: "command",
  lane: "workload",
  title: "true",
  created_at: "2030-01-01T00:00:00.000Z",
  state,
  attempts: 1,
  voided_attempts: 0,
  next_seq: 1,
  updated_at: "2030-01-01T00:00:00.000Z",
  leased_by: state === "leased" || state === "running" ? "endpoint_1" : null,
  not_before: null,
  quarantine: null,
  last_error: null,
  outcome: null,
  cancellation_request: null,
});

describe("every pair of states", () => {
  for (const from of JOB_STATES) {
    for (const to of JOB_STATES) {
      const allowed = canTransition(from, to);
      test(`${from} -> ${to} is ${allowed ? "made" : "refused"}`, () => {
        const touched: string[] = [];
        const w: Writing = {
          sql,
          counts: new Counts(),
          time: new SteadyTime(systemClock),
          held: new HeldAttempts(),
          now: "2031-01-01T00:00:00.000Z",
          touch: (topic) => touched.push(topic),
        };
        const row = headIn(from);
        const edit = new JobEdit(w, row);
        if (allowed) {
          edit.move(to);
          expect(row).toMatchObject({
            state: to,
            updated_at: w.now,
            leased_by: to === "leased" || to === "running" ? row.leased_by : null,
          });
          expect(touched).toEqual(["queue"]);
          return;
        }
        const before = { ...row };
        let error: unknown;
        try {
          edit.move(to);
        } catch (thrown) {
          error = thrown;
        }
        expect(isRelayError(error, "state_conflict")).toBe(true);
        expect(row).toEqual(before);
        expect(touched).toEqual([]);
      });
    }
  }

  test("a task is queued, running or over, as its job is", () => {
    expect(JOB_STATES.map(taskStateOf)).toEqual(["queued", "queued", "running", "succeeded", "failed", "canceled"]);
  });
});
