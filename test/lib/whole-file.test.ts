import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { makeWholeFile } from "../../src/lib/whole-file.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();

test("a file has its name only when it is whole, and replaces the one before", () => {
  const base = directory();
  const target = path.join(base, "result");
  fs.writeFileSync(target, "before");
  const file = makeWholeFile(target);
  file.write(Buffer.from("af"));
  expect(fs.readFileSync(target, "utf8")).toBe("before");
  file.write(Buffer.from("ter"));
  file.finish();
  file.discard();
  expect(fs.readFileSync(target, "utf8")).toBe("after");
  expect(fs.readdirSync(base)).toEqual(["result"]);
});

test("a discarded one leaves nothing", () => {
  const base = directory();
  const file = makeWholeFile(path.join(base, "result"));
  file.write(Buffer.from("x"));
  file.discard();
  file.discard();
  expect(fs.readdirSync(base)).toEqual([]);
});
