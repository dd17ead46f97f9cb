import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { auditOffline, repairOffline } from "../../src/roles/worker/offline.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { ownQueue } from "./kill-rounds.ts";
import { killedOwner } from "./killed-owner.ts";

const makeDirectory = temporaryDirectories();

/** A queue with three jobs that was closed in order. */
async function closed(): Promise<string> {
  const directory = makeDirectory();
  await killedOwner(directory, 3);
  await ownQueue(directory).close();
  return directory;
}

const makePipe = (file: string): number => Bun.spawnSync(["mkfifo", file]).exitCode;

const names = (directory: string): string[] => fs.readdirSync(directory).toSorted();

const failureOf = (work: () => Promise<unknown>): Promise<unknown> =>
  work().then(
    () => "it was opened",
    (error: unknown) => error,
  );

describe("where something else has the name of a queue's file, worker, audit and repair say what is there and leave it", () => {
  const kinds: readonly (readonly [string, (file: string) => unknown])[] = [
    ["a directory", (file) => fs.mkdirSync(file)],
    ["a named pipe", makePipe],
    ["a symbolic link", (file) => fs.symlinkSync("/dev/null", file)],
    ["a symbolic link", (file) => fs.symlinkSync("nowhere", file)],
  ];
  for (const name of ["queue.db", "queue.db-journal", "queue.db-shm", "queue.lock"]) {
    for (const [index, [kind, make]] of kinds.entries()) {
      test(`${name} is ${kind}, case ${index}`, async () => {
        const directory = await closed();
        const file = path.join(directory, name);
        fs.rmSync(file, { force: true });
        make(file);
        const before = names(directory);
        for (const open of [async () => ownQueue(directory), () => auditOffline(directory), () => repairOffline(directory)]) {
          expect(await failureOf(open)).toMatchObject({
            code: "queue_unavailable",
            message: expect.stringContaining(`${file} is ${kind}`),
            hint: expect.stringContaining("move it away"),
          });
        }
        expect(names(directory)).toEqual(before);
      });
    }
  }

  test("a rollback journal of another program is not played back", async () => {
    const directory = await closed();
    const file = path.join(directory, "queue.db");
    fs.writeFileSync(`${file}-journal`, Buffer.from("d9d505f920a163d7ffffffff000000000000000000001000", "hex"));
    const before = fs.readFileSync(file);
    expect(await failureOf(async () => ownQueue(directory))).toMatchObject({
      code: "queue_unavailable",
      message: expect.stringContaining(`${file}-journal is a rollback journal`),
    });
    expect(fs.readFileSync(file).equals(before)).toBe(true);
  });
});

describe("a repair of what has no tables that it knows", () => {
  const edit = (statement: string) => (file: string) => {
    using database = new Database(file);
    database.run(statement);
  };
  test.each<[string, (file: string) => void]>([
    ["an empty file", (file) => fs.truncateSync(file)],
    ["one byte", (file) => fs.truncateSync(file, 1)],
    ["a header", (file) => fs.truncateSync(file, 100)],
    ["schema number 0", edit("PRAGMA user_version = 0")],
    ["schema number -1", edit("PRAGMA user_version = -1")],
    ["a table that is gone", edit("DROP TABLE progress")],
    ["a column that is gone", edit("ALTER TABLE segments RENAME COLUMN base TO start")],
  ])("%s: refused as damaged, and left as it was", async (_name, damage) => {
    const directory = await closed();
    const file = path.join(directory, "queue.db");
    damage(file);
    for (const beside of ["-wal", "-shm"]) fs.rmSync(file + beside, { force: true });
    const before = fs.readFileSync(file);
    expect(await failureOf(() => repairOffline(directory))).toMatchObject({
      code: "queue_corrupt",
      hint: expect.stringContaining("put a backup in its place"),
    });
    expect(fs.readFileSync(file).equals(before)).toBe(true);
    expect(names(directory)).toEqual(["committed.json", "queue.db", "queue.lock"]);
  });

  test("a trigger and a table that are not the queue's are left out of the file that it makes", async () => {
    const directory = await closed();
    const file = path.join(directory, "queue.db");
    edit("CREATE TRIGGER gone AFTER INSERT ON jobs BEGIN DELETE FROM jobs; END")(file);
    edit("CREATE TABLE notes (text TEXT)")(file);
    expect(await failureOf(async () => ownQueue(directory))).toMatchObject({
      code: "queue_corrupt",
      message: expect.stringContaining("trigger gone, table notes"),
    });
    expect((await repairOffline(directory)).remaining).toEqual([]);
    const queue = ownQueue(directory);
    expect((await queue.store.stats()).active).toBe(3);
    await queue.close();
  });
});
