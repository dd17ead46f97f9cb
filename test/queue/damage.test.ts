import { afterEach, describe, expect, test } from "bun:test";
import os from "node:os";
import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import type { Writing } from "../../src/queue/sqlite/access.ts";
import { jobIndexes } from "../../src/queue/sqlite/checks/job-index.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { sqliteQueue } from "../../src/queue/sqlite/sqlite-queue.ts";
import { Statements, type Value } from "../../src/queue/sqlite/statements.ts";
import type { Finding } from "../../src/queue/store.ts";
import { report } from "../contract/queue-store/ingest.ts";
import { command } from "../contract/queue-store/scene.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { type Case, MENDED, OF } from "./damage-cases.ts";
import { type Sample, type Statement, sample } from "./damage-sample.ts";
import { LOST } from "./lost-cases.ts";

const samples: Sample[] = [];
const open = async (): Promise<Sample> => {
  const s = await sample();
  samples.push(s);
  return s;
};
afterEach(async () => {
  for (const { scene } of samples.splice(0)) await scene.dispose();
});

const about = (findings: readonly Finding[], { check, subject }: Case, s: Sample): Finding[] =>
  findings.filter((finding) => finding.check === check && (subject === undefined || finding.subject === subject(s)));

describe("damage that can be put right", () => {
  for (const entry of MENDED) {
    test(entry.name, async () => {
      const s = await open();
      if (entry.index === undefined) await s.damage(...entry.damage(s));
      else await s.spoilIndex(entry.index);
      const audit = await s.scene.store.audit({ deep: true });
      expect(audit.ok).toBe(false);
      expect(about(audit.findings, entry, s)).toMatchObject([{ repairable: true }]);
      expect((await s.scene.store.audit({ deep: true })).findings).toEqual([...audit.findings]);

      const repair = await s.scene.store.repair({ deep: true });
      expect(repair).toMatchObject({ remaining: [], truncated: false });
      expect(about(repair.repaired, entry, s)).toHaveLength(1);
      await s.scene.expectSound();
      await entry.after?.(s);
      await s.scene.reopen();
      await s.scene.expectSound();
    });
  }
});

describe("damage that nothing can put right is found, named and left", () => {
  for (const entry of LOST) {
    test(entry.name, async () => {
      const s = await open();
      await s.damage(...entry.damage(s));
      const found = about((await s.scene.store.audit({ deep: true })).findings, entry, s);
      expect(found).toMatchObject([{ repairable: false }]);
      const { remaining } = await s.scene.store.repair({ deep: true });
      expect(about(remaining, entry, s)).toEqual(found);
      await s.scene.submit();
    });
  }
});

test("what only a look at the whole file finds is left out of an audit that is not deep", async () => {
  const s = await open();
  const [row] = LOST.filter(({ check }) => check === "foreign_key");
  await s.damage(...row!.damage(s), ["UPDATE jobs SET next_seq = 2 WHERE job_id = ?", s.ended]);
  await s.spoilIndex("progress_latest", report().label);
  const named = (findings: readonly Finding[]) => findings.map(({ check }) => check);
  expect(named((await s.scene.store.audit()).findings)).toEqual(["event_counter"]);
  expect(named((await s.scene.store.audit({ deep: true })).findings)).toEqual(["integrity", "foreign_key", "event_counter"]);
  expect(named((await s.scene.store.repair()).repaired)).toEqual(["event_counter"]);
  const { repaired, remaining } = await s.scene.store.repair({ deep: true });
  expect([named(repaired), named(remaining)]).toEqual([["integrity"], ["foreign_key"]]);
});

describe("a running job whose record cannot be read", () => {
  const spoil = (jobId: string): Statement => ["UPDATE jobs SET spec = 'x' WHERE job_id = ?", jobId];

  test("is kept out and left, because only the worker can find out what it has left", async () => {
    const s = await open();
    await s.damage(spoil(s.running));
    const { repaired, remaining } = await s.scene.store.repair({ deep: true });
    expect(repaired).toMatchObject([{ check: "record", subject: s.running }]);
    expect(remaining).toMatchObject([{ check: "record", subject: s.running, repairable: false }]);
    expect(await s.scene.store.attempt(s.running)).toMatchObject({ state: "running" });
    expect((await s.scene.store.stats()).quarantined).toBe(1);
  });

  test("is left too when its shim was of this boot, whether or not it lives", async () => {
    const s = await open();
    const here = { ...self(), start_time: 1 };
    await s.damage(spoil(s.running), [`UPDATE attempts SET shim = ? WHERE ${OF}`, JSON.stringify(here), s.running]);
    await s.scene.store.repair({ deep: true });
    expect(await s.scene.store.attempt(s.running)).toMatchObject({ state: "running", shim: here });
    expect((await s.scene.store.stats()).leases_by_kind).toEqual({ command: 3 });
  });

  test("fails when its host was started anew since, which nothing of it survived", async () => {
    const s = await open();
    const before = { pid: 7, start_time: 7, boot_id: "11111111-2222-3333-4444-555555555555", hostname: os.hostname() };
    await s.damage(spoil(s.running), [`UPDATE attempts SET shim = ? WHERE ${OF}`, JSON.stringify(before), s.running]);
    const { repaired } = await s.scene.store.repair({ deep: true });
    expect(repaired).toMatchObject([{ check: "record", subject: s.running }]);
    expect((await s.scene.store.recentJobs({ states: ["failed"] }, null, 5)).jobs.map((job) => job.job_id)).toEqual([s.running]);
    expect(await s.scene.store.attempt(s.running)).toMatchObject({ state: "ended" });
    expect((await s.scene.eventTypes(s.running)).at(-1)).toBe("job.failed");
  });
});

test("an earlier attempt that was never closed is nobody's to recover", async () => {
  const s = await open();
  await s.damage([`UPDATE attempts SET state = 'running', ended_at = NULL, outcome = NULL WHERE ${OF} AND attempt = 1`, s.retried]);
  const recovered = (await s.scene.store.openAttempts()).map(({ job, attempt }) => [job.job_id, attempt.attempt]);
  expect(recovered).toEqual([
    [s.retried, 2],
    [s.running, 1],
    [s.leased, 1],
  ]);
});

test("what cannot be mended after all keeps nothing else from being mended", async () => {
  const s = await open();
  await s.damage(
    ["UPDATE jobs SET leased_by = NULL WHERE job_id = ?", s.running],
    ["UPDATE jobs SET next_seq = 2 WHERE job_id = ?", s.ended],
  );
  const { repaired, remaining } = await s.scene.store.repair({ deep: true });
  expect(repaired.map(({ check, subject }) => [check, subject])).toEqual([["event_counter", s.ended]]);
  const lease = remaining.find(({ check }) => check === "lease");
  expect(lease).toMatchObject({ subject: s.running, repairable: false });
  expect(lease?.detail).toMatch(
    /another attempt, endpoint, kind or lane; mending it failed: .*NOT NULL constraint failed: leases\.endpoint_id/,
  );
  // The statement that failed is undone: the lease that was there still is.
  expect((await s.scene.store.stats()).leases_by_kind).toEqual({ command: 3 });
});

test("a repair ends when every mending brings about another damage", async () => {
  using directory = temporaryDirectory();
  const { database, file } = openDatabase(directory.path);
  const store = sqliteQueue(database, file, { clock: systemClock, activeJobsMax: 10, leaseSeconds: 120 });
  const { job } = await store.submit(command(), "workload");
  database.run("UPDATE jobs SET next_seq = 100");
  database.run(
    `CREATE TRIGGER worse AFTER UPDATE OF next_seq ON jobs WHEN new.next_seq < old.next_seq
     BEGIN UPDATE jobs SET next_seq = old.next_seq + 1 WHERE sequence = new.sequence; END`,
  );
  const { repaired, remaining } = await store.repair();
  expect(repaired.length).toBeGreaterThan(1);
  expect(remaining).toMatchObject([{ check: "event_counter", subject: job.job_id, repairable: true }]);
  await store.close();
});

test("what one mending mends of many jobs is done once", async () => {
  using directory = temporaryDirectory();
  const { database, file } = openDatabase(directory.path);
  const store = sqliteQueue(database, file, { clock: systemClock, activeJobsMax: 100, leaseSeconds: 120 });
  await Promise.all(Array.from({ length: 60 }, () => store.submit(command(), "workload")));
  database.run("PRAGMA ignore_check_constraints = ON");
  database.run("UPDATE jobs SET ready = 0");
  database.run("PRAGMA ignore_check_constraints = OFF");
  const ran: string[] = [];
  const sql = new (class extends Statements {
    override run(statement: string, ...values: Value[]) {
      ran.push(statement);
      return super.run(statement, ...values);
    }
  })(database);
  const w = { sql } as unknown as Writing;
  const damages = jobIndexes(w, { from: 1, to: 60 });
  for (const { mend } of damages) mend?.(w);
  expect([damages.length, ran.filter((statement) => statement === "REINDEX jobs").length]).toEqual([60, 1]);
  expect(jobIndexes(w, { from: 1, to: 60 })).toEqual([]);
  sql.finalize();
  expect((await store.audit()).findings).toEqual([]);
  await store.close();
});
