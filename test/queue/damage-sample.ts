import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { report, timelineEntry } from "../contract/queue-store/ingest.ts";
import { pin, transformOf } from "../contract/queue-store/lineage.ts";
import { artifact, capture, ROOMY, Scene, settlement, started, withRetries } from "../contract/queue-store/scene.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

export type Statement = readonly [sql: string, ...values: (string | number | null)[]];

/** A queue with a job in every condition that the damages below need. */
export interface Sample {
  readonly scene: Scene;
  readonly queued: string;
  readonly leased: string;
  readonly running: string;
  readonly ended: string;
  readonly retried: string;
  /** Run statements behind the back of the closed store, with SQLite's own guards off. */
  damage(...statements: readonly Statement[]): Promise<void>;
  /** The same, with an index of jobs that does not follow. */
  behindIndex(index: keyof typeof PREDICATES, ...statements: readonly Statement[]): Promise<void>;
  /** Overwrite the last letter of a word in the root page of an index. */
  spoilIndex(index: string, word?: string): Promise<void>;
}

/** Sound, until one of its ways to do damage is used. Dispose of its scene. */
export async function sample(): Promise<Sample> {
  const directory = temporaryDirectory();
  const scene = await Scene.open(async () => ({
    open: async (options) => openQueue(directory.path, options),
    spoil: async () => undefined,
    dispose: async () => directory[Symbol.dispose](),
  }));
  const ended = await scene.running();
  const captures = { stdout: capture(10), stderr: capture(0) };
  const { task_id } = (await scene.store.tasks(ended.job.job_id, { cursor: 1, limit: 1 })).items[0]!;
  await scene.store.recordTaskEvent(task_id, timelineEntry());
  await scene.store.recordTaskEvent(task_id, timelineEntry());
  await scene.store.recordProgress(ended.job.job_id, report());
  await scene.store.recordProgress(ended.job.job_id, report());
  await scene.store.settle(
    ended.fence,
    settlement(scene.clock, "completed", { captures, artifacts: [artifact("artifact_1"), artifact("artifact_2")] }),
  );
  const retried = await scene.running(withRetries(1));
  await scene.store.settle(retried.fence, settlement(scene.clock, "exit_nonzero", { captures }));
  scene.clock.advance(1_000);
  const endpoint = await scene.endpoint();
  await scene.store.claim(endpoint, ROOMY);
  await scene.store.startAttempt({ ...retried.fence, attempt: 2 }, started(scene.clock));
  await scene.store.ingest(
    { ...retried.fence, attempt: 2 },
    { deltas: [{ stream: "stdout", bytes: 5, text: "later" }], truncations: [], emits: [] },
  );
  const running = await scene.running();
  const leased = await scene.claimed();
  const { sha256 } = artifact("artifact_1");
  const pins = ["artifact_1", "artifact_2"].map((artifact_id) => pin(artifact_id, { sha256 }));
  const queued = await scene.submit({ used_artifact_refs: pins });
  await scene.store.recordTransform(queued.job_id, transformOf(pins));
  await scene.expectSound();

  const file = path.join(directory.path, "queue.db");
  return {
    scene,
    queued: queued.job_id,
    leased: leased.job.job_id,
    running: running.job.job_id,
    ended: ended.job.job_id,
    retried: retried.job.job_id,
    damage: (...statements) => scene.reopen(() => damage(file, statements)).then(() => undefined),
    async behindIndex(index, ...statements) {
      await scene.reopen(() => {
        const [predicate, never] = PREDICATES[index];
        overwrite(file, [predicate, never]);
        damage(file, statements);
        overwrite(file, [never, predicate]);
      });
    },
    async spoilIndex(index, word = "workload") {
      await scene.reopen(() => {
        const database = new Database(file, { readonly: true });
        const root = database.query<{ rootpage: number }, [string]>("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(index);
        database.close();
        const bytes = fs.readFileSync(file);
        const start = ((root?.rootpage ?? 0) - 1) * 4_096;
        const at = bytes.subarray(start, start + 4_096).indexOf(word);
        expect(at).toBeGreaterThan(0);
        bytes.write("~", start + at + word.length - 1, "latin1");
        fs.writeFileSync(file, bytes);
      });
    },
  };
}

/** Run statements with SQLite's own guards off. */
function damage(file: string, statements: readonly Statement[]): void {
  const database = new Database(file);
  database.run("PRAGMA foreign_keys = OFF");
  database.run("PRAGMA ignore_check_constraints = ON");
  for (const [sql, ...values] of statements) {
    const { changes } = database.run(sql, values);
    if (sql.startsWith("UPDATE") || sql.startsWith("DELETE") || sql.startsWith("INSERT")) expect(changes, sql).toBeGreaterThan(0);
  }
  database.close();
}

/** What the schema says of the rows that an index has, and something of the same length that no row fulfils. */
const PREDICATES = {
  jobs_ready: ["WHERE ready = 1", "WHERE ready = 9"],
  jobs_delayed: ["WHERE not_before IS NOT NULL", "WHERE not_before > '~~~~~~~'"],
} as const;

/** Overwrite a word wherever a file has it: pages that were split keep it in unused places, too. */
function overwrite(file: string, [before, after]: readonly [string, string]): void {
  expect(after).toHaveLength(before.length);
  const bytes = fs.readFileSync(file);
  let at = bytes.indexOf(before);
  expect(at).toBeGreaterThan(0);
  for (; at >= 0; at = bytes.indexOf(before, at)) bytes.write(after, at, "latin1");
  fs.writeFileSync(file, bytes);
}
