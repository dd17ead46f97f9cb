import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Metadata, recordOf } from "../../src/domain/primitives.ts";
import { CommandSpec } from "../../src/domain/specs.ts";
import { NewTaskEvent } from "../../src/domain/task.ts";

/** Names that objects of JavaScript have already, or take for something else. */
const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];

const json = (text: string): unknown => JSON.parse(text);

describe.each(NAMES)("a member named %s", (name) => {
  test("is kept by a record like any other", () => {
    const given = json(`{"${name}":{"${name}":[{"${name}":1}]}}`);
    expect(JSON.stringify(v.parse(Metadata, given))).toBe(JSON.stringify(given));
  });

  test("is a variable of a job", () => {
    const spec = v.parse(CommandSpec, json(`{"argv":["true"],"env":{"${name}":"x"}}`));
    expect(Object.entries(spec.env)).toEqual([[name, "x"]]);
  });

  test("is not there where nobody gave it", () => {
    const spec = v.parse(CommandSpec, json('{"argv":["true"],"env":{"A":"x"}}'));
    expect([name in spec.env, spec.env[name]]).toEqual([false, undefined]);
  });

  test("is unknown where members are listed", () => {
    const result = v.safeParse(NewTaskEvent, json(`{"event_type":"e","label":"l","summary":"s","${name}":1}`));
    expect([result.success, result.issues?.map((issue) => v.getDotPath(issue))]).toEqual([false, [name]]);
  });

  test("is checked like any other", () => {
    const result = v.safeParse(recordOf(v.pipe(v.string(), v.maxLength(3)), v.number()), json(`{"${name}":"text"}`));
    expect(result.issues?.map(({ path }) => path?.map(({ key }) => key))).toEqual([[name], [name]]);
  });
});

test("an inherited member is nobody's", () => {
  expect(v.parse(Metadata, Object.create({ inherited: 1 }))).toEqual({});
});

test.each([null, 1, "text", [1], undefined])("%p is no record", (value) => {
  expect(v.safeParse(recordOf(v.string(), v.number()), value).success).toBe(false);
});
