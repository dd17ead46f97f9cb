import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { writeFileAtomic } from "../../../src/lib/files/atomic-file.ts";
import { makeWholeFile } from "../../../src/lib/files/whole-file.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directory = temporaryDirectories();

test("a file has its name only when it is whole, and replaces the one before", async () => {
  const base = directory();
  const target = path.join(base, "result");
  fs.writeFileSync(target, "before");
  const file = await makeWholeFile(target);
  await file.write(Buffer.from("af"));
  expect(fs.readFileSync(target, "utf8")).toBe("before");
  await file.write(Buffer.from("ter"));
  await file.finish();
  await file.discard();
  expect(fs.readFileSync(target, "utf8")).toBe("after");
  expect(fs.readdirSync(base)).toEqual(["result"]);
});

test("a discarded one leaves nothing", async () => {
  const base = directory();
  const file = await makeWholeFile(path.join(base, "result"));
  await file.write(Buffer.from("x"));
  await file.discard();
  await file.discard();
  expect(fs.readdirSync(base)).toEqual([]);
});

test("a file has the permissions of the one that it replaces, and a new one those that the umask leaves", async () => {
  const base = directory();
  const umask = process.umask(0o027);
  try {
    const modeOf = (name: string) => fs.statSync(path.join(base, name)).mode & 0o7777;
    for (const [name, mode] of Object.entries({ private: 0o600, shared: 0o666, readOnly: 0o440 })) {
      fs.writeFileSync(path.join(base, name), "before");
      fs.chmodSync(path.join(base, name), mode);
      const file = await makeWholeFile(path.join(base, name));
      const part = fs.readdirSync(base).find((entry) => entry.endsWith(".part"))!;
      expect([name, modeOf(part)]).toEqual([name, mode]);
      await file.finish();
      expect([name, modeOf(name)]).toEqual([name, mode]);
    }
    await (await makeWholeFile(path.join(base, "new"))).finish();
    expect(modeOf("new")).toBe(0o640);
  } finally {
    process.umask(umask);
  }
});

test.each([
  ["ASCII", "n".repeat(255)],
  ["three bytes each", "€".repeat(85)],
  ["four bytes each, and some", `x${"😀".repeat(63)}y`],
])("a name as long as names may be, of %s, can be taken", async (_, name) => {
  const base = directory();
  const file = await makeWholeFile(path.join(base, name));
  await file.write(Buffer.from("x"));
  await file.finish();
  writeFileAtomic(path.join(base, name), "y");
  expect(fs.readdirSync(base)).toEqual([name]);
});
