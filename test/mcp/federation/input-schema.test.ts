import { expect, test } from "bun:test";
import Ajv, { type ValidateFunction } from "ajv";
import Ajv2020 from "ajv/dist/2020";
import { CONTROLS } from "../../../src/mcp/federation/controls.ts";
import { misplacedArgument, splitArguments, withControls } from "../../../src/mcp/federation/input-schema.ts";
import { inputSchemaProblem } from "../../../src/mcp/federation/schema-problem.ts";

type Schema = Record<string, unknown>;

const closed = (properties: Schema, more: Schema = {}): Schema => ({ type: "object", properties, additionalProperties: false, ...more });
const injected = (schema: Schema, clusters = ["a", "b"]) => withControls(schema, clusters, CONTROLS);
const options = { strict: false, logger: false, addUsedSchema: false } as const;
const [draft7, modern] = [new Ajv(options), new Ajv2020(options)];
const compiled = (schema: unknown): ValidateFunction => {
  const dialect = (schema as Schema)["$schema"];
  return (typeof dialect === "string" && dialect.includes("draft-07") ? draft7 : modern).compile(schema as Schema);
};

test("a closed object gets the cluster and the controls beside its own properties", () => {
  const { form, schema } = injected(closed({ path: { type: "string" } }, { required: ["path"], title: "Args" }));
  expect(form).toBe("flat");
  expect(schema["required"]).toEqual(["cluster", "path"]);
  expect(Object.keys(schema["properties"] as Schema)[0]).toBe("cluster");
  const fits = compiled(schema);
  expect([fits({ cluster: "a", path: "/x", wait_for_terminal: false }), fits({ path: "/x" }), fits({ cluster: "c", path: "/x" })]).toEqual([
    true,
    false,
    false,
  ]);
  expect(fits({ cluster: "a", path: "/x", extra: 1 })).toBe(false);
});

test("references of a closed object lead where they led", () => {
  const schema = closed({ root: { $ref: "#/$defs/node" } }, { $defs: { node: closed({ next: { $ref: "#/$defs/node" } }) } });
  const { form, schema: made } = injected(schema);
  expect(form).toBe("flat");
  const fits = compiled(made);
  expect([fits({ cluster: "a", root: { next: { next: {} } } }), fits({ cluster: "a", root: { next: 1 } })]).toEqual([true, false]);
});

test.each<[string, Schema]>([
  ["open", { type: "object", properties: { path: { type: "string" } } }],
  ["open by a schema", closed({}, { additionalProperties: { type: "string" } })],
  ["composed", closed({ a: {} }, { anyOf: [{ required: ["a"] }] })],
  ["one with an id", closed({}, { $id: "https://example.edu/s.json" })],
  ["one with a property cluster", closed({ cluster: { type: "string" } })],
  ["one with a property of a control", closed({ idempotency_key: { type: "string" } })],
  ["recursive at its root", closed({ next: { $ref: "#" } })],
  ["recursive by $dynamicRef", closed({ next: { $dynamicRef: "#node" } }, { $dynamicAnchor: "node" })],
  ["one with a property that models' interfaces refuse", closed({ 数据: { type: "string" } })],
  ["one with a property of a long name", closed({ ["x".repeat(65)]: {} })],
  ["one with an example", closed({ a: {} }, { examples: [{ a: 1 }] })],
])("%s stands whole below arguments", (_what, schema) => {
  const { form, schema: made } = injected(schema);
  expect(form).toBe("nested");
  expect(Object.keys(made["properties"] as Schema)).toEqual(["cluster", "arguments", "controls"]);
  expect((made["properties"] as Schema)["controls"]).toMatchObject({ type: "object", properties: CONTROLS, additionalProperties: false });
  expect((made["properties"] as Schema)["arguments"]).toMatchObject(schema);
  const fits = compiled(made);
  expect([
    fits({ cluster: "a", arguments: {} }) || (schema["anyOf"] !== undefined && fits({ cluster: "a", arguments: { a: 1 } })),
    fits({ cluster: "a" }),
  ]).toEqual([true, false]);
});

test("a recursive schema below arguments refers to itself, and not to what is around it", () => {
  const fits = compiled(injected(closed({ next: { $ref: "#" }, value: { type: "number" } })).schema);
  expect(fits({ cluster: "a", arguments: { next: { next: { value: 1 } } } })).toBe(true);
  expect(fits({ cluster: "a", arguments: { next: { cluster: "a" } } })).toBe(false);
});

test("definitions of draft 7 below arguments are found, in that dialect", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { list: { $ref: "#/definitions/list" } },
    definitions: { list: { type: "array", items: { $ref: "#/definitions/item" } }, item: { type: "integer" } },
  };
  const { form, schema: made } = injected(schema);
  expect([form, made["$schema"]]).toEqual(["nested", schema.$schema]);
  const fits = compiled(made);
  expect([fits({ cluster: "b", arguments: { list: [1, 2] } }), fits({ cluster: "b", arguments: { list: ["x"] } })]).toEqual([true, false]);
});

test("references of draft 4 are made to lead to where the schema is; data that looks like one is left", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-04/schema#",
    type: "object",
    properties: { $ref: { type: "string" }, self: { $ref: "#" }, item: { $ref: "#/definitions/item" } },
    definitions: {
      item: { enum: [{ $ref: "#/definitions/item" }] },
      apart: { id: "http://example.edu/x", properties: { y: { $ref: "#/z" } } },
    },
  };
  const nested = (injected(schema).schema["properties"] as Schema)["arguments"] as Schema;
  expect(nested["$id"]).toBeUndefined();
  expect(nested["properties"]).toEqual({
    $ref: { type: "string" },
    self: { $ref: "#/properties/arguments" },
    item: { $ref: "#/properties/arguments/definitions/item" },
  });
  expect(nested["definitions"]).toEqual(schema.definitions);
});

test("arguments are told from what is this endpoint's own", () => {
  const given = { cluster: "a", path: "/x", wait_for_terminal: false };
  expect(splitArguments("flat", given, CONTROLS)).toEqual({ own: { cluster: "a", wait_for_terminal: false }, remote: { path: "/x" } });
  const nested = { cluster: "a", arguments: { cluster: "its own", path: null }, controls: { log_limit: 1 } };
  expect(splitArguments("nested", nested, CONTROLS)).toEqual({
    own: { cluster: "a", controls: { log_limit: 1 } },
    remote: { cluster: "its own", path: null },
  });
  expect(splitArguments("nested", { cluster: "a" }, CONTROLS).remote).toEqual({});
});

const open = { type: "object", properties: { path: {} } };
test.each<[string, "flat" | "nested", Schema, Schema, string | null, string]>([
  ["a control beside arguments", "nested", open, { arguments: {}, log_limit: 1 }, "log_limit", "`controls`"],
  ["a control among the server's", "nested", open, { arguments: { idempotency_key: "k" } }, "arguments.idempotency_key", "`controls`"],
  [
    "a control among the server's, of which one takes anything",
    ...(["nested", { type: "object", properties: { meta: { additionalProperties: true } } }, { arguments: { log_limit: 1 } }] as const),
    "arguments.log_limit",
    "`controls`",
  ],
  ["the cluster among the server's", "nested", open, { arguments: { cluster: "a" } }, "arguments.cluster", "beside `arguments`"],
  ["controls among the server's", "nested", open, { arguments: { controls: {} } }, "arguments.controls", "beside `arguments`"],
  ["the cluster among the controls", "nested", open, { controls: { cluster: "a" } }, "controls.cluster", "beside `controls`"],
  ["the server's beside the cluster", "nested", open, { path: "/x" }, "path", "`arguments`"],
  ["the server's among the controls", "nested", open, { controls: { path: "/x" } }, "controls.path", "`arguments`"],
  ["controls where there are none", "flat", closed({ path: {} }), { controls: { log_limit: 1 } }, "controls", "beside `cluster`"],
  ["arguments where there are none", "flat", closed({ path: {} }), { arguments: { path: "/x" } }, "arguments", "beside `cluster`"],
  ["a server's own of that name", "nested", closed({ log_limit: {} }), { arguments: { log_limit: 1 } }, null, ""],
  [
    "a server's own of that name, in a part",
    "nested",
    { ...open, anyOf: [{ properties: { log_limit: {} } }] },
    { arguments: { log_limit: 1 } },
    null,
    "",
  ],
  ["a server's that takes anything", "nested", { ...open, additionalProperties: {} }, { arguments: { log_limit: 1 } }, null, ""],
  ["a server's own controls", "flat", closed({ controls: {}, arguments: {} }), { controls: {}, arguments: {} }, null, ""],
  ["what is right", "nested", open, { arguments: { path: "/x" }, controls: { log_limit: 1 } }, null, ""],
])("where it belongs is told of %s", (_what, form, schema, given, path, hint) => {
  const found = misplacedArgument(form, schema, { cluster: "a", ...given }, CONTROLS);
  expect(found?.path ?? null).toBe(path);
  expect(found?.hint ?? "").toContain(hint);
});

test.each<[string, unknown, string | null]>([
  ["a plain one", closed({ a: { type: "string" } }), null],
  ["one that says that everything goes", { type: "object", properties: { a: true } }, null],
  ["an anchor", { type: "object", properties: { a: { $ref: "#x" } }, $defs: { b: { $anchor: "x" } } }, null],
  ["a pointer with escapes", { type: "object", properties: { a: { $ref: "#/$defs/a~1b%20c" } }, $defs: { "a/b c": {} } }, null],
  ...["https://example.edu/s.json#/x", "file:///etc/passwd", "s.json", "urn:x"].map((elsewhere): [string, unknown, string] => [
    `of another document (${elsewhere})`,
    { type: "object", properties: { a: { $ref: elsewhere } } },
    `its reference "${elsewhere}" leads to another document`,
  ]),
  ["a reference that is no text", { type: "object", properties: { a: { $ref: 5 } } }, 'its reference "5" leads to another document'],
  [
    "an anchor that moves, and is not there",
    { type: "object", properties: { a: { $dynamicRef: "#x" } } },
    'its reference "#x" leads nowhere',
  ],
  ["an anchor that moves", { type: "object", properties: { a: { $dynamicRef: "#x" } }, $defs: { b: { $dynamicAnchor: "x" } } }, null],
  [
    "its own document by its id, whole and relative",
    {
      type: "object",
      $id: "https://example.edu/s.json",
      properties: { a: { $ref: "https://example.edu/s.json#/$defs/b" }, b: { $ref: "s.json#/$defs/b" }, c: { $ref: "t.json" } },
      $defs: { b: {}, c: { $id: "t.json" } },
    },
    null,
  ],
  [
    "a document within, with references of its own",
    { type: "object", $defs: { a: { $id: "x.json", properties: { y: { $ref: "#/z" } } } } },
    null,
  ],
  ["no object", "string", "it is no object"],
  ["nothing", null, "it is no object"],
  ["an array's", { type: "array" }, "its type is not object"],
  ["one without a type", { $ref: "#/$defs/a", $defs: { a: {} } }, "its type is not object"],
  ["properties that are a list", { type: "object", properties: [] }, "its properties are no object"],
  ["a property that is a text", { type: "object", properties: { a: "string" } }, "one of its properties is no schema"],
  ["required that is a text", { type: "object", required: "a" }, "its required are no list of names"],
  ["a reference to nothing", { type: "object", properties: { a: { $ref: "#/$defs/gone" } } }, 'its reference "#/$defs/gone" leads nowhere'],
  ["a long one", closed({ a: { description: "x".repeat(300_000) } }), "it takes 300084 bytes, and may take 262144"],
])("a schema that is %s", (_what, schema, problem) => {
  expect(inputSchemaProblem(schema)).toBe(problem);
});

test("names that are required twice are required once, and those of this endpoint stay with the server's", () => {
  const { form, schema } = injected(closed({ a: {} }, { required: ["a", "a"] }));
  expect([form, schema["required"]]).toEqual(["flat", ["cluster", "a"]]);
  for (const name of ["cluster", "idempotency_key"]) expect(injected(closed({ a: {} }, { required: [name] })).form).toBe("nested");
});

test("references that lead to nothing but each other are refused, and recursion through properties is not", () => {
  const chain = (more: Schema, $ref = "#/$defs/a") => inputSchemaProblem(closed({ x: { $ref } }, { $defs: more }));
  expect(chain({ a: { $ref: "#/$defs/a" } })).toContain("leads back to itself");
  expect(chain({ a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/c", title: "c" }, c: { $ref: "#/$defs/b" } })).toContain(
    "leads back to itself",
  );
  expect(chain({ a: { $anchor: "n", $ref: "#n" } }, "#n")).toContain("leads back to itself");
  expect(chain({ a: { $ref: "#/$defs/b" } })).toContain("leads nowhere");
  expect(chain({ a: { $ref: "#/$defs/b" }, b: closed({ again: { $ref: "#/$defs/a" } }) })).toBeNull();
  expect(chain({ a: { $id: "https://example.edu/a.json", $ref: "#/x", x: {} } })).toBeNull();
  expect(inputSchemaProblem({ type: "object", $ref: "#" })).toContain("leads back to itself");
});

test("a schema that is nested without end is refused, and not followed", () => {
  let schema: Schema = { type: "object" };
  for (let level = 0; level < 100_000; level++) schema = { type: "object", properties: { a: schema } };
  expect(inputSchemaProblem(schema)).toBe("it is nested deeper than 64 levels");
});
