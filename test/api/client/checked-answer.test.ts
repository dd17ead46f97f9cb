import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { checkedAnswer } from "../../../src/api/client/checked-answer.ts";
import { jobWith } from "../../../src/domain/job.ts";
import { JsonValue, recordOf, text } from "../../../src/domain/primitives.ts";

const Part = v.strictObject({ state: v.picklist(["queued", "running"]), title: text(4) });
const Whole = v.strictObject({
  parts: v.array(Part),
  kind: v.variant("kind", [v.strictObject({ kind: v.literal("a"), part: v.nullable(Part) })]),
  size: v.pipe(v.number(), v.maxValue(3)),
  named: recordOf(v.string(), Part),
  free: JsonValue,
});
const PART = { state: "queued", title: "t" };
const WHOLE = { parts: [PART], kind: { kind: "a", part: PART }, size: 1, named: { n: PART }, free: { a: [1] } };

const refused = (answer: unknown) =>
  expect(() => checkedAnswer(Whole, answer, "the worker of far")).toThrow(
    expect.objectContaining({ code: "answer_malformed", message: expect.stringContaining("the worker of far") }) as Error,
  );

describe("an answer", () => {
  test("is handed on as it came, with what a later version has added anywhere in it", () => {
    const later = { ...PART, state: "suspended", title: "longer than before", more: { x: 1 } };
    const answer = {
      ...WHOLE,
      parts: [PART, later],
      kind: { kind: "a", part: later, more: 1 },
      size: 9,
      named: { n: later },
      more: [],
    };
    expect(checkedAnswer(Whole, WHOLE, "it")).toBe(WHOLE as never);
    expect(checkedAnswer(Whole, answer, "it")).toBe(answer as never);
  });

  test("that is another document is refused, and whose it is is said", () => {
    for (const answer of [undefined, null, [], {}, "text", 1, true, { parts: WHOLE.parts }]) refused(answer);
    expect(() => checkedAnswer(Whole, {}, "it")).toThrow(/ parts: Invalid key: Expected "parts" but received undefined$/);
    refused({ ...WHOLE, parts: {} });
    refused({ ...WHOLE, parts: [{ ...PART, title: null }] });
    refused({ ...WHOLE, parts: [{ ...PART, title: "" }] });
    refused({ ...WHOLE, parts: [{ ...PART, state: "\x1b[2J" }] });
    refused({ ...WHOLE, parts: [{ ...PART, state: 3 }] });
    refused({ ...WHOLE, kind: { kind: "b", part: null } });
    refused({ ...WHOLE, size: "1" });
    refused({ ...WHOLE, named: { n: { ...PART, title: 7 }, m: PART } });
  });

  test("of an earlier version has null where it says nothing yet, and null may be", () => {
    const { part: _none, ...kind } = WHOLE.kind;
    expect(checkedAnswer(Whole, { ...WHOLE, kind }, "it")).toEqual({ ...WHOLE, kind: { ...kind, part: null } } as never);
    expect(checkedAnswer(v.nullable(Whole), null, "it")).toBeNull();
  });

  test("that is wrong behind what is new is refused", () => {
    refused({ ...WHOLE, parts: [{ ...PART, more: 1, title: 7 }] });
    refused({ ...WHOLE, more: 1, free: undefined });
  });

  test("that is nested beyond measure is refused", () => {
    let deep: unknown = 1;
    for (let i = 0; i < 200_000; i++) deep = [deep];
    refused({ ...WHOLE, free: deep });
  });

  test("of a job is told from what only looks like one", () => {
    expect(() => checkedAnswer(jobWith({}), { kind: "command", job_id: "job_\x1b]0;x" }, "it")).toThrow(
      expect.objectContaining({ code: "answer_malformed" }) as Error,
    );
  });
});
