import { expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Ingest, QueueStore } from "../../../src/queue/store.ts";
import { Ingester } from "../../../src/roles/worker/ingester.ts";
import { Patience } from "../../../src/roles/worker/patience.ts";

test("what came first is recorded between reading the output and committing it, and only where there is some", async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-ingester-"));
  try {
    const done: string[] = [];
    const store = {
      segments: async () => [],
      emitOffsets: async () => new Map(),
      ingest: async (_fence: unknown, { deltas }: Ingest) => void done.push(...deltas.map(({ stream, bytes }) => `${stream} ${bytes}`)),
    } as unknown as QueueStore;
    const first = async () => {
      done.push("first");
      // What comes meanwhile was not read, and waits for the next time.
      fs.appendFileSync(path.join(directory, "stdout.log"), "later");
    };
    const patience = new Patience(new AbortController().signal, () => undefined);
    const ingester = new Ingester(store, { job_id: "job_1", attempt: 1 }, directory, patience, first);
    expect(await ingester.ingest(false)).toBe(false);
    expect(done).toEqual([]);
    fs.writeFileSync(path.join(directory, "stdout.log"), "hi\n");
    await ingester.ingest(false);
    expect(done).toEqual(["first", "stdout 3"]);
    await ingester.ingest(false);
    expect(done.slice(2)).toEqual(["first", "stdout 5"]);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
});
