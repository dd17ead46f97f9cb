import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { left, pin } from "../contract/queue-store/lineage.ts";
import { Scene } from "../contract/queue-store/scene.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { olderQueue } from "./older-queue.ts";

async function scene(): Promise<{ scene: Scene; file: string }> {
  const directory = temporaryDirectory();
  const opened = await Scene.open(async () => ({
    open: async (options) => openQueue(directory.path, options),
    spoil: async () => undefined,
    dispose: async () => directory[Symbol.dispose](),
  }));
  return { scene: opened, file: path.join(directory.path, "queue.db") };
}

/** A connection as the queue's own: with foreign keys. */
function behind(file: string, work: (database: Database) => void): void {
  const database = new Database(file);
  database.run("PRAGMA foreign_keys = ON");
  try {
    work(database);
  } finally {
    database.close();
    fs.rmSync(`${file}-shm`, { force: true });
  }
}

test("no statement removes an artifact or its producer while somebody uses it, and any does afterwards", async () => {
  const { scene: s, file } = await scene();
  const producer = await left(s, ["artifact_a", "artifact_b"]);
  const consumer = await s.submit({ used_artifact_refs: [pin("artifact_a")] });
  const of = (table: string, column: string, id: string) =>
    `DELETE FROM ${table} WHERE ${column} = (SELECT sequence FROM jobs WHERE job_id = '${id}')`;
  const REST = ["tasks", "events", "progress", "attempts", "leases", "segments", "emit_offsets"];
  await s.reopen(() =>
    behind(file, (database) => {
      expect(() => database.run("DELETE FROM artifacts WHERE artifact_id = 'artifact_a'")).toThrow("FOREIGN KEY");
      expect(() => database.run(of("artifacts", "job", producer))).toThrow("FOREIGN KEY");
      for (const table of REST) database.run(of(table, "job", producer));
      expect(() => database.run(`DELETE FROM jobs WHERE job_id = '${producer}'`)).toThrow("FOREIGN KEY");
      // An edge of a consumer keeps that one, too, until it is taken away with it.
      for (const table of REST) database.run(of(table, "job", consumer.job_id));
      expect(() => database.run(`DELETE FROM jobs WHERE job_id = '${consumer.job_id}'`)).toThrow("FOREIGN KEY");
      database.run(of("used_artifacts", "consumer", consumer.job_id));
      database.run(`DELETE FROM jobs WHERE job_id = '${consumer.job_id}'`);
      database.run(of("artifacts", "job", producer));
      database.run(`DELETE FROM jobs WHERE job_id = '${producer}'`);
    }),
  );
  expect((await s.store.recentJobs({}, null, 10)).jobs).toEqual([]);
  await s.dispose();
});

test("jobs of the schema before keep what they pinned, as edges where it is there", async () => {
  const { scene: s, file } = await scene();
  await left(s, ["artifact_a", "artifact_b"]);
  const consumer = await s.submit({ used_artifact_refs: [pin("artifact_b"), pin("artifact_a")] });
  const edges = (await s.store.usedArtifacts(consumer.job_id, { cursor: 1, limit: 10 })).items;
  const old = temporaryDirectory();
  // As the schema before has it: pins have no provenance, and were looked up by nobody.
  await s.reopen(() => {
    const database = olderQueue(old.path, 1, file);
    database.run(`UPDATE jobs SET used_artifact_refs = replace(used_artifact_refs, ',"provenance":null', '')`);
    const more = `[{"artifact_id":"artifact_a","sha256":"${"0".repeat(64)}"},{"artifact_id":"artifact_none","sha256":"${"0".repeat(64)}"}]`;
    database.run("UPDATE jobs SET used_artifact_refs = ? WHERE used_artifact_refs = '[]'", [more]);
    database.close();
  });
  const store = openQueue(old.path, { clock: s.clock, activeJobsMax: 100, leaseSeconds: 120 });
  expect((await store.usedArtifacts(consumer.job_id, { cursor: 1, limit: 10 })).items).toEqual(edges);
  expect(await store.usedBy("artifact_a", { cursor: 1, limit: 10 })).toMatchObject({ total: 1 });
  expect((await store.job(consumer.job_id)).used_artifact_refs.map((use) => use.artifact_id)).toEqual(["artifact_a", "artifact_b"]);
  await store.close();
  expect(fs.existsSync(path.join(old.path, "queue.db.v1.bak"))).toBe(true);
  old[Symbol.dispose]();
  await s.dispose();
});
