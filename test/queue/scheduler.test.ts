import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { ROOMY, Scene, settlement, withRetries } from "../contract/queue-store/scene.ts";
import { claimedScheduled, statusOf, submitted } from "../contract/queue-store/scheduler.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { olderQueue } from "./older-queue.ts";

const makeDirectory = temporaryDirectories();
const scenes: Scene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.dispose();
});

/** The queue in a directory. Ids begin elsewhere for each, because one queue has the rows of another. */
async function opened(directory: string): Promise<Scene> {
  const scene = await Scene.open(async () => ({
    open: async (options) => openQueue(directory, options),
    spoil: async () => undefined,
    dispose: async () => undefined,
  }));
  for (let used = 0; used < 10 * scenes.length; used++) scene.id("endpoint");
  scenes.push(scene);
  return scene;
}

/** Run a statement behind the back of the closed store, with SQLite's own guards off. */
function behind(directory: string, statement: string): void {
  const database = new Database(path.join(directory, "queue.db"));
  database.run("PRAGMA foreign_keys = OFF");
  database.run("PRAGMA ignore_check_constraints = ON");
  expect(database.run(statement).changes).toBe(1);
  database.close();
}

/** A queue of schema 4 with jobs in every state, and what they are. */
async function before(directory: string, damage = ""): Promise<readonly unknown[]> {
  const today = makeDirectory();
  const scene = await opened(today);
  const ended = await scene.running();
  await scene.store.settle(ended.fence, settlement(scene.clock, "completed"));
  const delayed = await scene.running(withRetries(1));
  await scene.store.settle(delayed.fence, settlement(scene.clock, "exit_nonzero"));
  const ids = [ended, delayed, await scene.running(), await scene.claimed()].map(({ job }) => job.job_id);
  ids.push((await scene.submit({ metadata: { title: "it waits" } })).job_id, (await scene.submit({}, "control")).job_id);
  const jobs = await Promise.all(ids.map((id) => scene.store.job(id)));
  await scene.reopen(() => {
    const database = olderQueue(directory, 4, path.join(today, "queue.db"));
    // The last number was given out, and its job is gone.
    database.run("UPDATE sqlite_sequence SET seq = 40 WHERE name = 'jobs'");
    if (damage !== "") {
      database.run("PRAGMA ignore_check_constraints = ON");
      database.run(damage);
    }
    database.close();
  });
  return jobs;
}

test("a queue without a lane for schedulers gets one, and keeps every job and number", async () => {
  const directory = makeDirectory();
  const jobs = await before(directory);
  const scene = await opened(directory);
  const { jobs: found } = await scene.store.recentJobs({}, null, 10);
  expect(await Promise.all(found.map(({ job_id }) => scene.store.job(job_id)))).toEqual(jobs.toReversed() as never);
  await scene.expectSound();
  expect(fs.existsSync(path.join(directory, "queue.db.v4.bak"))).toBe(true);
  expect((await scene.submit()).sequence).toBe(41);
  // In the order of submission, with those that waited before.
  const endpoint = await scene.endpoint();
  for (let i = 0; i < 3; i++) expect((await scene.store.claim(endpoint, ROOMY))?.job.lane).not.toBe("scheduler");
  expect((await claimedScheduled(scene)).job.sequence).toBe(42);
  await scene.expectSound();
});

test("rows that break a rule are migrated all the same, and found by the audit", async () => {
  const directory = makeDirectory();
  const jobs = await before(directory, "UPDATE jobs SET ready = 1 WHERE state = 'running'");
  const scene = await opened(directory);
  expect((await scene.store.audit()).findings.map(({ check }) => check)).toEqual(["job_index"]);
  expect((await scene.store.recentJobs({}, null, 10)).jobs).toHaveLength(jobs.length);
});

test.each([
  ["a status that cannot be read", "scheduler_job", "UPDATE scheduler_jobs SET status = '{'"],
  ["the status of another job", "scheduler_job", "UPDATE scheduler_jobs SET status = replace(status, '4711', '4712')"],
  ["an end that its status does not tell of", "scheduler_job", "UPDATE scheduler_jobs SET ended_at = observed_at"],
  ["a task that does not say what the scheduler does", "task_state", "UPDATE tasks SET state = 'queued' WHERE sequence = 2"],
  ["a task that is gone", "task", "DELETE FROM tasks WHERE sequence = 2"],
])("%s is mended", async (_name, check, damage) => {
  const directory = makeDirectory();
  const scene = await opened(directory);
  const fence = await submitted(scene, "4711");
  await scene.store.observeScheduler(fence, statusOf(scene, "4711", { phase: "running" }));
  await scene.expectSound();
  await scene.reopen(() => behind(directory, damage));
  expect((await scene.store.audit()).findings).toMatchObject([{ check, subject: fence.job_id, repairable: true }]);
  await scene.store.repair();
  await scene.expectSound();
  scene.clock.advance(5_000);
  await scene.store.observeScheduler(fence, statusOf(scene, "4711", { phase: "running", nodes: "node-7" }));
  const [record] = (await scene.store.schedulerJobs(fence.job_id, { cursor: 1, limit: 1 })).items;
  expect(record).toMatchObject({ native_id: "4711", status: { nodes: "node-7" } });
  expect((await scene.store.task(record!.task_id)).state).toBe("running");
  await scene.expectSound();
});

test("an end that only its status tells of is mended, with its task", async () => {
  const directory = makeDirectory();
  const scene = await opened(directory);
  const fence = await submitted(scene, "4711");
  const status = statusOf(scene, "4711", { phase: "running" });
  await scene.store.observeScheduler(fence, status);
  await scene.reopen(() => behind(directory, "UPDATE scheduler_jobs SET status = json_set(status, '$.phase', 'completed')"));
  expect((await scene.store.audit()).findings.map(({ check }) => check)).toEqual(["scheduler_job", "task_state"]);
  await scene.store.repair();
  await scene.expectSound();
  const [record] = (await scene.store.schedulerJobs(fence.job_id, { cursor: 1, limit: 1 })).items;
  expect(record).toMatchObject({ ended_at: status.observed_at, status: { phase: "completed" } });
});

test("a record that is none is found, and left", async () => {
  const directory = makeDirectory();
  const scene = await opened(directory);
  const fence = await submitted(scene, "4711");
  await scene.reopen(() => behind(directory, "UPDATE scheduler_jobs SET submission = 'perhaps'"));
  const { findings } = await scene.store.audit();
  expect(findings).toMatchObject([{ check: "scheduler_job", subject: fence.job_id, repairable: false }]);
});

test("what is asked of a scheduler's jobs is found by an index, however many there were", () => {
  const { database } = openDatabase(makeDirectory());
  const plan = (sql: string): string[] => {
    const statement = database.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`);
    const steps = statement.all().map(({ detail }) => detail);
    statement.finalize();
    return steps;
  };
  expect(plan("SELECT * FROM scheduler_jobs AS s WHERE s.native_id = '1'")).toEqual([
    "SEARCH s USING INDEX scheduler_jobs_native (native_id=?)",
  ]);
  expect(plan("SELECT * FROM scheduler_jobs AS s WHERE s.ended_at IS NULL AND s.submission <> 'refused' ORDER BY s.job")).toEqual([
    "SCAN s USING INDEX scheduler_jobs_open",
  ]);
  expect(
    plan("UPDATE tasks SET state = '' WHERE job = 1 AND sequence NOT IN (SELECT task FROM scheduler_jobs WHERE job = 1)")[1],
  ).not.toContain("SCAN");
  database.close();
});
