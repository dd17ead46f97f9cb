import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import type { Reading } from "../../src/queue/sqlite/access.ts";
import { STEP_BYTES, STEP_ROWS } from "../../src/queue/sqlite/checks/budget.ts";
import { Counts } from "../../src/queue/sqlite/counts.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { HeldAttempts } from "../../src/queue/sqlite/held-attempts.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { sqliteQueue } from "../../src/queue/sqlite/sqlite-queue.ts";
import { Statements } from "../../src/queue/sqlite/statements.ts";
import { SteadyTime } from "../../src/queue/sqlite/steady-time.ts";
import { findDamage } from "../../src/queue/sqlite/survey.ts";
import type { Finding, QueueStore } from "../../src/queue/store.ts";
import { report, timelineEntry } from "../contract/queue-store/ingest.ts";
import { command, Scene } from "../contract/queue-store/scene.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const OPTIONS = { clock: systemClock, activeJobsMax: 10_000, leaseSeconds: 120 };
const makeDirectory = temporaryDirectories();
const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A queue's file, made by `fill`. */
async function fileWith(fill: (store: QueueStore) => Promise<void>): Promise<string> {
  const directory = makeDirectory();
  const store = openQueue(directory, OPTIONS);
  await fill(store);
  await store.close();
  return path.join(directory, "queue.db");
}

const submitted = async (store: QueueStore): Promise<string> => (await store.submit(command(), "workload")).job.job_id;

/** What a survey of a file does in each of its steps. */
async function steps(file: string): Promise<{ rows: number; turns: number; findings: string[]; looked: Record<string, number> }[]> {
  const database = new Database(file);
  const sql = new Statements(database);
  closing.push(() => {
    sql.finalize();
    database.close();
  });
  const counts = new Counts();
  counts.read(sql);
  const reading: Reading = { sql, counts, time: new SteadyTime(systemClock), held: new HeldAttempts() };
  let turns = 0;
  let going = true;
  const count = () => {
    turns += 1;
    if (going) setImmediate(count);
  };
  setImmediate(count);
  const seen: { rows: number; turns: number; findings: string[]; looked: Record<string, number> }[] = [];
  await findDamage(
    async (fn) => {
      seen.push({ rows: 0, turns, findings: [], looked: {} });
      return fn(reading);
    },
    { deep: false },
    (table, rows) => {
      const last = seen.at(-1)!;
      last.rows += rows;
      last.looked[table] = (last.looked[table] ?? 0) + rows;
    },
  );
  going = false;
  return seen;
}

const total = (seen: readonly { looked: Record<string, number> }[], table: string): number =>
  seen.reduce((sum, { looked }) => sum + (looked[table] ?? 0), 0);

describe("a survey is made in bounded steps, and the event loop goes round after each", () => {
  test("however many rows one job has", async () => {
    const rows = 4 * STEP_ROWS + 7;
    const file = await fileWith(async (store) => {
      const job = await submitted(store);
      const { task_id } = (await store.tasks(job, { cursor: 1, limit: 1 })).items[0]!;
      for (let made = 0; made < rows; made += 250) {
        const some = Array.from({ length: Math.min(250, rows - made) });
        await Promise.all(some.map(() => store.recordProgress(job, report())));
        await Promise.all(some.map(() => store.recordTaskEvent(task_id, timelineEntry())));
      }
    });
    const seen = await steps(file);
    for (const table of ["progress", "task_events"]) expect([table, total(seen, table)]).toEqual([table, rows]);
    expect(total(seen, "events")).toBe(2 * rows + 2);
    expect(seen.filter(({ looked }) => looked["events"] !== undefined).length).toBeGreaterThanOrEqual(8);
    expect(Math.max(...seen.map((step) => step.rows))).toBeLessThanOrEqual(STEP_ROWS);
    seen.slice(1).forEach((step, index) => {
      expect(step.turns).toBeGreaterThan(seen[index]!.turns);
    });
  });

  test("however many jobs there are", async () => {
    const file = await fileWith(async (store) => {
      await Promise.all(Array.from({ length: 1_234 }, () => submitted(store)));
    });
    const seen = await steps(file);
    for (const table of ["jobs", "idempotency", "tasks"]) expect([table, total(seen, table)]).toEqual([table, 1_234]);
    expect(Math.max(...seen.map((step) => step.looked["idempotency"] ?? 0))).toBeLessThanOrEqual(STEP_ROWS);
    expect(Math.max(...seen.map((step) => step.looked["jobs"] ?? 0))).toBeLessThanOrEqual(50);
    expect(seen.length).toBeGreaterThan(25 * 5);
  });

  test("however long the texts are: a step ends with the one that fills it", async () => {
    const long = "x".repeat(STEP_BYTES / 2);
    const file = await fileWith(async (store) => {
      const job = await submitted(store);
      await store.appendEvents(
        job,
        Array.from({ length: 12 }, () => ({ event_type: "execution.adopted", message: "m", payload: { long } }) as const),
      );
      for (let i = 0; i < 6; i++) await store.submit(command({ metadata: { long: long.repeat(2) } }), "workload");
    });
    const seen = await steps(file);
    expect(total(seen, "events")).toBe(2 + 12 + 6 * 2);
    expect(seen.filter(({ looked }) => (looked["events"] ?? 0) > 0).length).toBeGreaterThanOrEqual(12);
    expect(seen.filter(({ looked }) => (looked["jobs"] ?? 0) > 0).length).toBeGreaterThanOrEqual(6);
  });

  test("what comes meanwhile is answered before it ends, and is no damage", async () => {
    const store = openQueue(makeDirectory(), OPTIONS);
    closing.push(() => store.close());
    const first = await submitted(store);
    await Promise.all(Array.from({ length: 600 }, () => submitted(store)));
    let ended = false;
    const audit = store.audit().finally(() => {
      ended = true;
    });
    let answered = 0;
    while (!ended) {
      await store.recordProgress(first, report());
      await submitted(store);
      answered += 1;
    }
    expect(answered).toBeGreaterThan(20);
    expect(await audit).toMatchObject({ ok: true, findings: [] });
  });
});

describe("a check that cannot be made", () => {
  /** A store on a file whose page with the given text was overwritten, opened without the look that would refuse it. */
  function openSpoilt(file: string, text: string): QueueStore {
    const bytes = fs.readFileSync(file);
    const pageOf = (at: number) => at - (at % 4_096);
    let at = bytes.indexOf(text);
    // A leaf of the table: any other page would take more with it (sqlite.org/fileformat2.html, 1.6).
    while (at >= 0 && bytes[pageOf(at)] !== 0x0a) at = bytes.indexOf(text, pageOf(at) + 4_096);
    expect(at).toBeGreaterThan(0);
    bytes.fill(0xff, pageOf(at), pageOf(at) + 4_096);
    fs.writeFileSync(file, bytes);
    const store = sqliteQueue(new Database(file), file, OPTIONS);
    closing.push(() => store.close());
    return store;
  }

  test("is a finding, and keeps no other check and no other job from being looked at", async () => {
    const spoilt = "this text stands on the page that is spoilt";
    let damaged = "";
    const file = await fileWith(async (store) => {
      await Promise.all(Array.from({ length: 200 }, () => submitted(store)));
      const job = await submitted(store);
      for (let i = 0; i < 60; i++) await store.appendEvents(job, [{ event_type: "execution.adopted", message: spoilt }]);
      await Promise.all(Array.from({ length: 200 }, () => submitted(store)));
      damaged = await submitted(store);
    });
    const database = new Database(file);
    database.run("UPDATE tasks SET state = 'running' WHERE job = (SELECT sequence FROM jobs WHERE job_id = ?)", [damaged]);
    database.run("UPDATE jobs SET next_seq = 9 WHERE job_id = ?", [damaged]);
    database.close();
    const store = openSpoilt(file, spoilt);

    const { ok, findings, checked } = await store.audit();
    expect(ok).toBe(false);
    const failed = findings.filter(({ check }) => check === "check_failed");
    expect(failed.map(({ subject }) => subject)).toContain("job 201");
    expect(failed.length).toBeLessThan(40);
    for (const finding of failed) {
      expect(finding).toMatchObject({ detail: expect.stringMatching(/the check event cannot be made: .*malformed/), repairable: false });
    }
    expect(findings.filter(({ subject }) => subject === damaged).map(({ check }) => check)).toEqual(["event_counter"]);
    expect(findings.map(({ check }) => check)).toContain("task_state");
    expect(checked).toMatchObject({ jobs: 402, tasks: 402 });

    const { repaired, remaining } = await store.repair();
    expect(repaired.map(({ check }) => check).toSorted()).toEqual(["event_counter", "task_state"]);
    expect(remaining.every(({ check }) => check === "check_failed")).toBe(true);
  });

  test("of the table of jobs itself leaves a report too", async () => {
    const file = await fileWith(async (store) => {
      for (let i = 0; i < 300; i++) await store.submit(command({ metadata: { note: `note ${i}` } }), "workload");
    });
    const database = new Database(file);
    const root = database.query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_schema WHERE name = 'jobs'").get()!.rootpage;
    database.close();
    const store = sqliteQueue(new Database(file), file, OPTIONS);
    closing.push(() => store.close());
    const bytes = fs.readFileSync(file);
    bytes.fill(0xff, (root - 1) * 4_096, root * 4_096);
    // The pages that the store has read already are in its cache; a fresh one has none.
    fs.writeFileSync(`${file}.spoilt`, bytes);
    const spoilt = new Database(`${file}.spoilt`);
    const sql = new Statements(spoilt);
    closing.push(() => {
      sql.finalize();
      spoilt.close();
    });
    const reading: Reading = { sql, counts: new Counts(), time: new SteadyTime(systemClock), held: new HeldAttempts() };
    const found = await findDamage(async (fn) => fn(reading), { deep: true });
    const failed = found.filter(({ check }) => check === "check_failed").map(({ subject, detail }) => `${subject}: ${detail}`);
    expect(failed).toContainEqual(expect.stringMatching(/^queue.db: the check jobs cannot be made: /));
    expect(failed).toContainEqual(expect.stringMatching(/^job 1: the check record cannot be made: /));
  });
});

describe("a repair leaves alone what an attempt holds that somebody here looks after", () => {
  const OF = "job = (SELECT sequence FROM jobs WHERE job_id = ?)";
  const damages = [
    ["a lease that is gone", "lease", `DELETE FROM leases WHERE ${OF}`],
    ["a lease of another endpoint", "lease", `UPDATE leases SET endpoint_id = 'endpoint_stray' WHERE ${OF}`],
    ["a wrong count of attempts", "attempt_counter", "UPDATE jobs SET voided_attempts = 1 WHERE job_id = ?"],
    ["a job that is only leased", "attempt_state", "UPDATE jobs SET state = 'leased' WHERE job_id = ?"],
    ["a job that has ended", "attempt_state", "UPDATE jobs SET state = 'failed', leased_by = NULL, outcome = '{}' WHERE job_id = ?"],
    ["a segment at the wrong place", "segment", `UPDATE segments SET base = 7 WHERE ${OF} AND stream = 'stdout'`],
    ["a segment that is gone", "segment", `DELETE FROM segments WHERE ${OF} AND stream = 'stdout'`],
    ["a position that no event tells of", "log_position", `UPDATE segments SET length = 99 WHERE ${OF} AND stream = 'stdout'`],
  ] as const;

  for (const [name, check, sql] of damages) {
    test(`${name}: left while the attempt is held, mended by a repair that no worker runs beside`, async () => {
      const directory = makeDirectory();
      let connection: Database | null = null;
      const scene = await Scene.open(async () => ({
        async open(options) {
          const { database, file } = openDatabase(directory);
          connection = database;
          return sqliteQueue(database, file, options);
        },
        spoil: async () => undefined,
        dispose: async () => undefined,
      }));
      closing.push(() => scene.dispose());
      const { job, fence } = await scene.running();
      connection!.run("PRAGMA ignore_check_constraints = ON");
      connection!.run(sql, [job.job_id]);
      const rows = (): unknown[] =>
        ["jobs", "attempts", "leases", "segments"].map((table) =>
          connection!
            .query<unknown, []>(`SELECT * FROM ${table}`)
            .all()
            .map((row) => ({ ...(row as object), next_seq: 0 })),
        );
      const about = (findings: readonly Finding[]) => findings.filter((finding) => finding.check === check);
      const before = rows();

      const left = await scene.store.repair();
      expect(rows()).toEqual(before);
      expect(about(left.repaired)).toEqual([]);
      expect(about(left.remaining)[0]).toMatchObject({
        subject: fence.job_id,
        repairable: false,
        detail: expect.stringContaining("because this worker looks after the attempt"),
      });

      await scene.reopen();
      expect(about((await scene.store.repair()).repaired)).toHaveLength(1);
    });
  }

  test("an attempt that is over, void or taken over is held by whoever has it then", async () => {
    const held = new HeldAttempts();
    const first = { job_id: "job_a", attempt: 1 };
    const next = { job_id: "job_a", attempt: 2 };
    await held.from(async (hold) => hold(first));
    // The next attempt is claimed in the transaction that voids the first: the answers come in any order.
    const voided = Promise.withResolvers<void>();
    const over = held.until(first, voided.promise);
    await held.from(async (hold) => hold(next));
    voided.resolve();
    await over;
    expect(held.has("job_a")).toBe(true);
    await held.until(next, Promise.resolve());
    expect(held.has("job_a")).toBe(false);
    await held.until(first, Promise.reject(new Error("fenced"))).catch(() => undefined);
    await held
      .from(async (hold) => {
        hold(first);
        throw new Error("no commit");
      })
      .catch(() => undefined);
    expect(held.has("job_a")).toBe(false);
  });
});
