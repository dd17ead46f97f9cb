import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { recordExit } from "../../src/execution/shim/record-exit.ts";
import { ReservedFile } from "../../src/execution/shim/reserved-file.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();

/** Fails with these codes, one a try, then gives the result. Time passes in pauses only. */
async function record(
  codes: string[],
  { result = true, thereFor = 100 } = {},
): Promise<{ tries: number; pauses: number[]; notes: string[] }> {
  let now = 0;
  let tries = 0;
  const pauses: number[] = [];
  const notes: string[] = [];
  await recordExit({
    isThere: () => tries < thereFor,
    commit: () => {
      const code = codes[tries++];
      if (code !== undefined) throw Object.assign(new Error(code), { code });
      return result;
    },
    clock: { now: () => now, monotonic: () => now },
    log: { note: (message) => notes.push(message) },
    patienceMs: 500,
    pause: (ms) => {
      now += ms;
      pauses.push(ms);
      return Promise.resolve();
    },
  });
  return { tries, pauses, notes };
}

describe("recordExit", () => {
  test("writes once, without a word, where the system takes it", async () => {
    expect(await record([])).toEqual({ tries: 1, pauses: [], notes: [] });
    expect(await record([], { result: false })).toMatchObject({ tries: 1, notes: ["exit.json was there already"] });
  });

  test("tries again beyond its patience, whatever the error, and says each reason once", async () => {
    const codes = ["ENOSPC", "ENOSPC", "EIO", "EDQUOT", "EDQUOT", "ENOENT"];
    const { tries, pauses, notes } = await record(codes);
    expect(tries).toBe(7);
    expect(pauses).toEqual([250, 250, 1_000, 1_000, 1_000, 1_000]);
    expect(notes).toHaveLength(5);
    expect(notes.at(-1)).toBe("exit.json written");
  });

  test("gives up when the directory is gone, or another one has its name", async () => {
    const { tries, notes } = await record(["EIO", "ENOENT", "ENOENT"], { thereFor: 2 });
    expect(tries).toBe(2);
    expect(notes.at(-1)).toContain("directory is gone, or another one has its name");
  });
});

describe("ReservedFile", () => {
  test("keeps its content through a failure, and appears as a whole afterwards", () => {
    const directory = temporary();
    const target = path.join(directory, "sub");
    const file = new ReservedFile(directory, "exit.json", 1_024);
    expect(() => file.commit(target, "{}", true)).toThrow(expect.objectContaining({ code: "ENOENT" }));
    fs.mkdirSync(target);
    expect(file.commit(target, "{}", true)).toBe(true);
    expect(fs.readFileSync(path.join(target, "exit.json"), "utf8")).toBe("{}");
    expect(fs.readdirSync(directory)).toEqual(["sub"]);
  });

  test("leaves a file of that name as it is", () => {
    const directory = temporary();
    const file = new ReservedFile(directory, "exit.json", 1_024);
    fs.writeFileSync(path.join(directory, "exit.json"), "first");
    expect(file.commit(directory, "{}", true)).toBe(false);
    expect(fs.readFileSync(path.join(directory, "exit.json"), "utf8")).toBe("first");
    expect(fs.readdirSync(directory)).toEqual(["exit.json"]);
  });

  test("whose temporary name was removed appears as a whole all the same, once", () => {
    const directory = temporary();
    const target = path.join(directory, "exit.json");
    const remove = (): void => {
      for (const name of fs.readdirSync(directory)) if (name.startsWith(".exit.json.")) fs.rmSync(path.join(directory, name));
    };
    const file = new ReservedFile(directory, "exit.json", 1_024);
    remove();
    expect(file.commit(directory, "{}", true)).toBe(true);
    const late = new ReservedFile(directory, "exit.json", 1_024);
    remove();
    expect(late.commit(directory, "late", true)).toBe(false);
    expect(fs.readFileSync(target, "utf8")).toBe("{}");
    expect(fs.readdirSync(directory)).toEqual(["exit.json"]);
  });

  test("given up twice closes nothing of others", () => {
    const directory = temporary();
    const file = new ReservedFile(directory, "exit.json", 1_024);
    file.abandon();
    const other = fs.openSync(directory, "r");
    file.abandon();
    expect(fs.fstatSync(other).isDirectory()).toBe(true);
    fs.closeSync(other);
  });
});
