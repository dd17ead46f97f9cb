import { expect, test } from "bun:test";
import { toJsonSchema } from "@valibot/to-json-schema";
import Ajv2020 from "ajv/dist/2020";
import * as v from "valibot";
import { JsonValue } from "../../src/domain/primitives.ts";
import { forInput, forOutput } from "../../src/mcp/compact-schema.ts";

const schemaOf = (schema: v.GenericSchema) => {
  const { $schema: _dialect, ...rest } = toJsonSchema(schema, { typeMode: "output", errorMode: "ignore" });
  return rest as Record<string, unknown>;
};
const fits = (schema: object) => new Ajv2020({ strict: false }).compile(schema);

test("any JSON is said in no words, and still taken", () => {
  const whole = schemaOf(
    v.strictObject({ value: v.pipe(JsonValue, v.description("what it is")), object: v.record(v.string(), JsonValue) }),
  );
  expect(JSON.stringify(whole)).toContain("$defs");
  const made = forInput(whole);
  expect(made).toEqual({
    type: "object",
    properties: { value: { description: "what it is" }, object: { type: "object" } },
    required: ["value", "object"],
    additionalProperties: false,
  });
  const check = fits(made);
  for (const value of [null, true, 1, "x", [1, { a: [] }], { a: { b: null } }]) expect(check({ value, object: {} })).toBe(true);
  expect([check({ value: 1, object: 1 }), check({ value: 1 })]).toEqual([false, false]);
});

test("of an argument it is said what helps to give it; how long it may be, and of what form, where somebody might come near it", () => {
  const many = v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(4_096))), v.maxLength(256)), []);
  const schema = v.strictObject({
    key: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
    path: v.pipe(v.string(), v.regex(/^\//), v.maxLength(4_096), v.description("an absolute path")),
    many,
    nodes: v.pipe(v.number(), v.minValue(1), v.maxValue(1_000_000)),
    limit: v.optional(v.pipe(v.number(), v.minValue(1), v.maxValue(500)), 50),
  });
  const { $schema: _dialect, ...whole } = toJsonSchema(schema, { typeMode: "input" });
  expect(forInput(whole as Record<string, unknown>)).toEqual({
    type: "object",
    properties: {
      key: { type: "string", maxLength: 512 },
      path: { type: "string", description: "an absolute path" },
      many: { type: "array", items: { type: "string" } },
      nodes: { type: "number" },
      limit: { type: "number", maximum: 500, default: 50 },
    },
    required: ["key", "path", "nodes"],
    additionalProperties: false,
  });
});

test("what an answer has sometimes only is told without its parts, and a long list of values as a text", () => {
  const part = v.object({ a: v.string() });
  const values = v.pipe(v.picklist(["a", "b", "c", "d", "e", "f", "g"]), v.description("why"));
  const made = forOutput(schemaOf(v.object({ always: part, sometimes: v.optional(v.pipe(part, v.description("what"))), values })));
  expect(made).toEqual({
    type: "object",
    properties: {
      always: { type: "object", properties: { a: { type: "string" } } },
      sometimes: { type: "object", description: "what" },
      values: { type: "string", description: "why" },
    },
    required: ["always", "values"],
  });
});

test("a definition that is not of any JSON stays, with what leads to it", () => {
  const tree = { anyOf: [{ type: "string" }, { type: "array", items: { $ref: "#/$defs/0" } }] };
  const schema = { type: "object", properties: { tree: { $ref: "#/$defs/0" } }, $defs: { "0": tree } };
  expect(forInput(schema)).toEqual(schema);
  expect(forOutput(schema)).toEqual(schema);
});

test("of an answer it is said what it always has at its root, and within that what there may be", () => {
  const part = v.object({ state: v.picklist(["queued", "running"]), count: v.pipe(v.number(), v.minValue(0)) });
  const made = forOutput(schemaOf(v.object({ part, other: v.nullable(part) })));
  const plain = { type: "object", properties: { state: { enum: ["queued", "running"] }, count: { type: "number" } } };
  // A list of types is JSON Schema, and not of every client's dialect.
  expect(made).toEqual({
    type: "object",
    properties: { part: plain, other: { anyOf: [plain, { type: "null" }] } },
    required: ["part", "other"],
  });
  const check = fits(made);
  const right = { state: "queued", count: 1 };
  expect([check({ part: right, other: null }), check({ part: { ...right, state: "x" }, other: null }), check({ part: right })]).toEqual([
    true,
    false,
    false,
  ]);
});
