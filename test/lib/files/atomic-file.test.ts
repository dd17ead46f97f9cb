import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createFileExclusive, makePrivateDirectory, PreparedFile, writeFileAtomic } from "../../../src/lib/files/atomic-file.ts";
import { readSmallFile } from "../../../src/lib/files/regular-file.ts";

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-atomic-"));
});
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }));

const inDirectory = (name: string) => path.join(directory, name);

describe("writeFileAtomic", () => {
  test("replaces the content and leaves nothing else behind", () => {
    writeFileAtomic(inDirectory("f"), "one");
    writeFileAtomic(inDirectory("f"), "two", { mode: 0o640 });
    expect(fs.readFileSync(inDirectory("f"), "utf8")).toBe("two");
    expect(fs.statSync(inDirectory("f")).mode & 0o777).toBe(0o640);
    expect(fs.readdirSync(directory)).toEqual(["f"]);
  });

  test("a failure leaves the old content and no temporary file", () => {
    fs.mkdirSync(inDirectory("d"));
    fs.writeFileSync(inDirectory("d/x"), "");
    expect(() => writeFileAtomic(inDirectory("d"), "new")).toThrow();
    expect(fs.readdirSync(directory)).toEqual(["d"]);
  });
});

describe("createFileExclusive", () => {
  test("the first wins, the second changes nothing", () => {
    expect(createFileExclusive(inDirectory("f"), "one")).toBe(true);
    expect(createFileExclusive(inDirectory("f"), "two")).toBe(false);
    expect(fs.readFileSync(inDirectory("f"), "utf8")).toBe("one");
    expect(fs.readdirSync(directory)).toEqual(["f"]);
  });

  test("a link that was made and reported as there already is one's own", () => {
    const file = new PreparedFile(directory, "start.json", "mine");
    const [temporary] = fs.readdirSync(directory);
    fs.linkSync(inDirectory(temporary!), inDirectory("start.json"));
    expect(file.publish(inDirectory("start.json"))).toBe(true);
    expect(fs.readFileSync(inDirectory("start.json"), "utf8")).toBe("mine");
    file.discard();
    expect(fs.readdirSync(directory)).toEqual(["start.json"]);
  });

  test("exactly one of many processes wins", async () => {
    const script = `import { createFileExclusive } from ${JSON.stringify(path.resolve("src/lib/files/atomic-file.ts"))};
      process.stdout.write(createFileExclusive(process.argv[2], String(process.pid)) ? "won" : "lost");`;
    fs.writeFileSync(inDirectory("racer.ts"), script);
    const racers = Array.from({ length: 8 }, () =>
      Bun.spawn([process.execPath, inDirectory("racer.ts"), inDirectory("start.json")], { stdout: "pipe", env: { BUN_BE_BUN: "1" } }),
    );
    const results = await Promise.all(racers.map(async (racer) => ({ pid: racer.pid, said: await new Response(racer.stdout).text() })));
    const winners = results.filter((r) => r.said === "won");
    expect(winners.length).toBe(1);
    expect(results.filter((r) => r.said === "lost").length).toBe(7);
    expect(fs.readFileSync(inDirectory("start.json"), "utf8")).toBe(String(winners[0]!.pid));
  });
});

describe("readSmallFile", () => {
  test("missing is null, small is its text, large is refused", () => {
    expect(readSmallFile(inDirectory("none"), 10)).toBeNull();
    fs.writeFileSync(inDirectory("f"), "0123456789");
    expect(readSmallFile(inDirectory("f"), 10)).toBe("0123456789");
    expect(() => readSmallFile(inDirectory("f"), 9)).toThrow(RangeError);
  });
});

test("a private directory is made with its parents, and again without harm", () => {
  makePrivateDirectory(inDirectory("a/b"));
  makePrivateDirectory(inDirectory("a/b"));
  expect(fs.statSync(inDirectory("a/b")).mode & 0o777).toBe(0o700);
});
