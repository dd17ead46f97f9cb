import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type Relay, startRelay } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";

/** An installation whose worker has run a job and is gone, with the path of its queue's file. */
async function used(): Promise<{ relay: Relay; file: string }> {
  const relay = await startRelay();
  expect((await relay.run(["job", "submit", "--wait", "--", "true"])).code).toBe(0);
  expect((await relay.run(["worker", "stop", "--cluster", "local"])).code).toBe(0);
  return { relay, file: path.join(relay.home, "core", "local", "queue.db") };
}

/** Change a database through SQLite itself, so that only what is meant is wrong with it. */
function edit(file: string, statement: string): void {
  using database = new Database(file);
  database.run(statement);
}

describe("a worker whose queue file", () => {
  test.each<[string, string, (file: string) => void]>([
    ["is cut short", "queue_corrupt", (file) => fs.truncateSync(file, Math.floor(fs.statSync(file).size / 2))],
    ["is empty", "queue_corrupt", (file) => fs.truncateSync(file, 0)],
    [
      "has a page of nonsense",
      "queue_corrupt",
      (file) => {
        const bytes = fs.readFileSync(file);
        bytes.fill(0xa5, 4_096, 8_192);
        fs.writeFileSync(file, bytes);
      },
    ],
    ["is no database", "queue_corrupt", (file) => fs.writeFileSync(file, "To whom it may concern\n".repeat(500))],
    ["is another program's", "queue_foreign", (file) => edit(file, "PRAGMA application_id = 7")],
    ["is a later version's", "queue_newer", (file) => edit(file, "PRAGMA user_version = 999")],
  ])("%s says so by name, and leaves it as it was", async (_what, code, spoil) => {
    const { relay: made, file } = await used();
    await using relay = made;
    spoil(file);
    const before = fs.readFileSync(file);
    const { code: exit, stderr } = await relay.run(["worker", "run", "--cluster", "local"]);
    expect([exit, /\[(queue_\w+)\]/.exec(stderr)?.[1]]).toEqual([1, code]);
    expect(fs.readFileSync(file).equals(before)).toBe(true);
    const started = await relay.run(["worker", "start", "--cluster", "local"]);
    expect(started.code).not.toBe(0);
    expect(fs.readFileSync(file).equals(before)).toBe(true);
  });
});

test("a write-ahead log that is gone after a SIGKILL: refused by name, until a repair goes on without it", async () => {
  await using relay = await startRelay();
  expect((await relay.run(["job", "submit", "--wait", "--", "true"])).code).toBe(0);
  const core = path.join(relay.home, "core", "local");
  const { pid } = JSON.parse(fs.readFileSync(path.join(core, "owner.json"), "utf8")) as { pid: number };
  process.kill(pid, "SIGKILL");
  const answers = async () => (await relay.run(["worker", "status", "--cluster", "local"])).code === 0;
  await eventually(async () => !(await answers()), { what: "the end of the worker" });
  fs.rmSync(path.join(core, "queue.db-wal"));

  const refused = await relay.run(["worker", "run", "--cluster", "local"]);
  expect([refused.code, /\[(queue_\w+)\]/.exec(refused.stderr)?.[1]]).toEqual([1, "queue_incomplete"]);
  expect(refused.stderr).toContain("may be missing");
  expect(refused.stderr).toContain("clio-relay queue repair");
  const repaired = await relay.run(["queue", "repair", "--cluster", "local", "--yes", "--json"]);
  expect(JSON.parse(repaired.stdout).repaired[0]).toMatchObject({ check: "file", subject: "queue.db-wal" });
  await relay.worker();
  expect((await relay.run(["job", "submit", "--wait", "--", "true"])).code).toBe(0);
});
