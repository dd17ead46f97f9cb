import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { firstEntries } from "../../../src/lib/files/first-entries.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const temporary = temporaryDirectories();

describe("firstEntries", () => {
  test("gives the names that readdir gives, up to the bound", () => {
    const directory = temporary();
    const names = ["a", ".hidden", "näme ☃", "x".repeat(255), "new\nline", "..."];
    for (const name of names) fs.writeFileSync(path.join(directory, name), "");
    const all = firstEntries(directory, names.length);
    expect([...all.names].sort()).toEqual(names.sort());
    expect(all.more).toBe(false);
    expect(firstEntries(directory, 2)).toEqual({ names: all.names.slice(0, 2), more: true });
    expect(firstEntries(temporary(), 2)).toEqual({ names: [], more: false });
  });

  test("leaves no descriptor open", () => {
    const directory = temporary();
    fs.writeFileSync(path.join(directory, "a"), "");
    firstEntries(directory, 0);
    const fd = fs.openSync(directory, "r");
    fs.closeSync(fd);
    for (let i = 0; i < 50; i++) firstEntries(directory, i % 2);
    const again = fs.openSync(directory, "r");
    fs.closeSync(again);
    expect(again).toBe(fd);
  });

  test("says why a directory cannot be opened", () => {
    const directory = temporary();
    const file = path.join(directory, "file");
    fs.writeFileSync(file, "");
    expect(() => firstEntries(path.join(directory, "missing"), 1)).toThrow(expect.objectContaining({ code: "ENOENT" }));
    expect(() => firstEntries(file, 1)).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
  });
});
