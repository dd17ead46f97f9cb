import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { parseJunit } from "./junit.ts";
import { temporaryDirectory } from "./temporary.ts";

const SAMPLE = `
import { describe, expect, test } from "bun:test";
describe("outer", () => {
  describe("inner", () => {
    test('a <b> & "c"', () => { expect(1).toBe(1); expect(2).toBe(2); });
  });
});
test("hollow", () => {});
test("fails", () => { expect("<testcase/>").toBe(2); });
test.skip("skipped", () => {});
test.todo("later");
`;

test("the report of a real run is read", () => {
  using directory = temporaryDirectory();
  const report = path.join(directory.path, "report.xml");
  fs.writeFileSync(path.join(directory.path, "sample.test.ts"), SAMPLE);
  const args = ["test", "./sample.test.ts", "--reporter=junit", `--reporter-outfile=${report}`];
  const result = Bun.spawnSync([process.execPath, ...args], { cwd: directory.path, stdout: "ignore", stderr: "ignore" });
  expect(result.exitCode).toBe(1);
  expect(parseJunit(fs.readFileSync(report, "utf8"))).toEqual([
    { file: "sample.test.ts", name: 'outer > inner > a <b> & "c"', outcome: "passed", assertions: 2 },
    { file: "sample.test.ts", name: "hollow", outcome: "passed", assertions: 0 },
    { file: "sample.test.ts", name: "fails", outcome: "failed", assertions: 1 },
    { file: "sample.test.ts", name: "skipped", outcome: "skipped", assertions: 0 },
    { file: "sample.test.ts", name: "later", outcome: "todo", assertions: 0 },
  ]);
});

test("a case without its attributes is an error, not a pass", () => {
  expect(() => parseJunit('<testcase name="x" />')).toThrow("lacks an attribute");
});
