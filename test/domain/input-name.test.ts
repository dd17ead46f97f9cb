import { expect, test } from "bun:test";
import fc from "fast-check";
import * as v from "valibot";
import { inputNameProblem, inputVariable, logicalNameOf } from "../../src/domain/input-name.ts";
import { JobSubmission } from "../../src/domain/job.ts";
import { LogicalName } from "../../src/domain/specs.ts";

test.each([
  ["deck", "CLIO_RELAY_INPUT_DECK"],
  ["pair-Table.2", "CLIO_RELAY_INPUT_PAIR_TABLE_2"],
  ["A_b", "CLIO_RELAY_INPUT_A_B"],
])("the variable of %s is %s", (name, variable) => {
  expect(inputVariable(name)).toBe(variable);
});

test.each([
  [["deck", "deck"], "named twice"],
  [["a-b", "a_b"], "both be CLIO_RELAY_INPUT_A_B"],
  [["Deck", "deck"], "both be CLIO_RELAY_INPUT_DECK"],
  [["2nd"], "no name of an input"],
  [["a b"], "no name of an input"],
  [["ü"], "no name of an input"],
  [[""], "no name of an input"],
  [["x".repeat(65)], "no name of an input"],
  [["workspace.root"], "is a setting"],
  [["file_max_count"], "is a setting"],
])("%p are refused: %s", (names, why) => {
  expect(inputNameProblem(names)).toContain(why);
});

test("names that differ in their variables go together", () => {
  expect(inputNameProblem(["deck", "table", "x".repeat(64)])).toBeNull();
});

test("any file name becomes a portable one, and a portable one stays", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 400 }), (name) => {
      const portable = logicalNameOf(name);
      expect(v.is(LogicalName, portable)).toBe(true);
      expect(logicalNameOf(portable)).toBe(portable);
    }),
  );
  expect(logicalNameOf("in.lj")).toBe("in.lj");
  expect(logicalNameOf(".bashrc")).toBe("file.bashrc");
  expect(logicalNameOf("my déck (1).txt")).toBe("my_d_ck__1_.txt");
  expect(logicalNameOf(`${"x".repeat(300)}.yaml`)).toBe(`${"x".repeat(250)}.yaml`);
});

const ARTIFACT = `artifact_${"0".repeat(32)}`;
const submission = (spec: object, pins: readonly object[] = [{ artifact_id: ARTIFACT, sha256: "a".repeat(64) }]) =>
  v.safeParse(JobSubmission, { kind: "command", cluster: "c", spec: { argv: ["true"], ...spec }, used_artifact_refs: pins });

test("a job's inputs have to be pinned, their variables free, and their names such that they can be", () => {
  expect(submission({ inputs: { deck: ARTIFACT } }).success).toBe(true);
  const why = (result: ReturnType<typeof submission>) => result.issues?.[0].message;
  expect(why(submission({ inputs: { deck: ARTIFACT } }, []))).toContain("used_artifact_refs");
  expect(why(submission({ inputs: { deck: ARTIFACT }, env: { CLIO_RELAY_INPUT_DECK: "x" } }))).toContain("path of an input");
  expect(why(submission({ inputs: { "a-b": ARTIFACT, a_b: ARTIFACT } }))).toContain("both be CLIO_RELAY_INPUT_A_B");
  expect(why(submission({ inputs: { deck: "../x" } }))).toContain("must match");
  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`n${n}`, ARTIFACT]));
  expect(why(submission({ inputs: many }))).toContain("at most 1000");
});
