import { sha256Hex } from "../../lib/digest.ts";
import { hasOwnId, isObject, type JsonSchema, mapSchema, visitSchemas } from "./schema-walk.ts";

/** Where arguments are: those of the server and of this endpoint side by side, or those of the server below `arguments`, and of this endpoint below `controls`. */
export type ArgumentForm = "flat" | "nested";

export interface WithControls {
  readonly form: ArgumentForm;
  readonly schema: JsonSchema;
}

/** Keywords of a root that mean the same beside further properties. */
const SIMPLE: ReadonlySet<string> = new Set([
  "$schema",
  "$comment",
  "$defs",
  "definitions",
  "title",
  "description",
  "type",
  "properties",
  "required",
  "additionalProperties",
]);
/** Dialects in which a schema within another one cannot be given an id that its references begin at. */
const OLD_DIALECT = /^http:\/\/json-schema\.org\/draft-0[34]\/schema#?$/;
const NESTED = "arguments";
const CONTROLLED = "controls";
/** Names of properties that models' interfaces take at a root; for another one, some refuse all tools together. */
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * A server's input schema with the arguments of this endpoint. A plain closed object gets them beside its own; what else there is stays whole below `arguments`, so that
 * what it says of itself still holds, and those of this endpoint are together below `controls`. Every reference still leads where it led.
 *
 * @param schema of type object
 * @param controls schemas of further arguments by name
 */
export function withControls(schema: JsonSchema, clusters: readonly string[], controls: JsonSchema): WithControls {
  const cluster = { type: "string", enum: [...clusters], description: "the cluster on which it is called" };
  if (isPlain(schema, controls)) {
    const { properties = {}, required = [] } = schema as { properties?: JsonSchema; required?: readonly string[] };
    const merged = { ...schema, properties: { cluster, ...properties, ...controls }, required: ["cluster", ...new Set(required)] };
    return { form: "flat", schema: merged };
  }
  const dialect = schema["$schema"];
  return {
    form: "nested",
    schema: {
      ...(typeof dialect === "string" ? { $schema: dialect } : {}),
      type: "object",
      properties: {
        cluster,
        [NESTED]: asPart(schema),
        [CONTROLLED]: {
          type: "object",
          properties: controls,
          additionalProperties: false,
          description: "of this endpoint, and not of the server",
        },
      },
      required: ["cluster", NESTED],
      additionalProperties: false,
    },
  };
}

function isPlain(schema: JsonSchema, controls: JsonSchema): boolean {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  if (schema["additionalProperties"] !== false) return false;
  if (!Object.keys(schema).every((keyword) => SIMPLE.has(keyword))) return false;
  const { required = [] } = schema as { required?: readonly string[] };
  if ([...Object.keys(properties), ...required].some((name) => isOwnArgument(name, controls))) return false;
  if (!Object.keys(properties).every((name) => PROPERTY.test(name))) return false;
  let whole = false;
  visitSchemas(schema, (one, own) => {
    // Who refers to the whole means it as it is, without anything added.
    if (own && (one["$ref"] === "#" || one["$ref"] === "#/" || "$recursiveRef" in one || "$dynamicRef" in one)) whole = true;
  });
  return !whole;
}

/** A document as a part of another one. */
function asPart(schema: JsonSchema): JsonSchema {
  if (hasOwnId(schema)) return schema;
  const dialect = schema["$schema"];
  if (typeof dialect === "string" && OLD_DIALECT.test(dialect)) return retargeted(schema);
  // RFC 8141: a name, and no place. In the core specification the references within begin at it.
  return { $id: `urn:clio-relay:schema:${sha256Hex(JSON.stringify(schema))}`, ...schema };
}

/** References to the document as references to where it is now. Those within a document of its own are its own matter. */
function retargeted(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, (one) => {
    const { $ref } = one;
    if (typeof $ref !== "string" || !($ref === "#" || $ref.startsWith("#/"))) return one;
    return { ...one, $ref: `#/properties/${NESTED}${$ref === "#" ? "" : $ref.slice(1)}` };
  });
}

/** Whether a name is that of an argument of this endpoint. */
const isOwnArgument = (name: string, controls: JsonSchema): boolean => name === "cluster" || Object.hasOwn(controls, name);

/** What a caller gave, as the server takes it, and what is this endpoint's own. @param controls names of further arguments */
export function splitArguments(
  form: ArgumentForm,
  given: Readonly<Record<string, unknown>>,
  controls: JsonSchema,
): { readonly own: Readonly<Record<string, unknown>>; readonly remote: unknown } {
  const isOwn = (name: string): boolean => isOwnArgument(name, controls);
  const members = Object.entries(given);
  if (form === "flat") {
    return {
      own: Object.fromEntries(members.filter(([name]) => isOwn(name))),
      remote: Object.fromEntries(members.filter(([name]) => !isOwn(name))),
    };
  }
  const { [NESTED]: remote = {}, ...own } = given;
  return { own, remote };
}

/** An argument that is known by its name, and stands where it is not looked for. */
export interface Misplaced {
  /** Where it stands: member names with dots between. */
  readonly path: string;
  /** Where it belongs, in words. */
  readonly hint: string;
}

/**
 * The first argument that stands in a wrong place. A control among the server's arguments would be handed to the server, and would not hold: an `idempotency_key` there
 * keeps nothing from being called twice. What the server's schema speaks of is the server's own.
 *
 * @param schema the server's own
 */
export function misplacedArgument(
  form: ArgumentForm,
  schema: JsonSchema,
  given: Readonly<Record<string, unknown>>,
  controls: JsonSchema,
): Misplaced | null {
  if (form === "flat") {
    const group = [CONTROLLED, NESTED].find((name) => isObject(given[name]) && !takes(schema, name));
    return group === undefined ? null : { path: group, hint: `this tool has no \`${group}\`: what is in it belongs beside \`cluster\`` };
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(controls, name)) return { path: name, hint: `\`${name}\` belongs into the object \`${CONTROLLED}\`` };
    if (name !== "cluster" && name !== NESTED && name !== CONTROLLED)
      return { path: name, hint: `the arguments of the server's own belong into the object \`${NESTED}\`` };
  }
  return misplacedWithin(schema, given, controls);
}

function misplacedWithin(schema: JsonSchema, given: Readonly<Record<string, unknown>>, controls: JsonSchema): Misplaced | null {
  const [remote, own] = [given[NESTED], given[CONTROLLED]];
  const among = isObject(remote) ? Object.keys(remote).find((name) => isGroup(name) && !takes(schema, name)) : undefined;
  if (among === "cluster" || among === CONTROLLED) return { path: `${NESTED}.${among}`, hint: `\`${among}\` belongs beside \`${NESTED}\`` };
  if (among !== undefined) return { path: `${NESTED}.${among}`, hint: `\`${among}\` belongs into the object \`${CONTROLLED}\`` };
  if (!isObject(own)) return null;
  if (Object.hasOwn(own, "cluster")) return { path: `${CONTROLLED}.cluster`, hint: `\`cluster\` belongs beside \`${CONTROLLED}\`` };
  const foreign = Object.keys(own).find((name) => !Object.hasOwn(controls, name) && takes(schema, name));
  return foreign === undefined ? null : { path: `${CONTROLLED}.${foreign}`, hint: `\`${foreign}\` belongs into the object \`${NESTED}\`` };

  function isGroup(name: string): boolean {
    return isOwnArgument(name, controls) || name === CONTROLLED;
  }
}

/** Whether a server's schema speaks of an argument of that name, or says that it takes any. An open one that says nothing of it does not. */
function takes(schema: JsonSchema, name: string): boolean {
  const isComposed = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"].some((keyword) => keyword in schema);
  let found = false;
  visitSchemas(schema, (one) => {
    const { properties, required, additionalProperties } = one;
    const isNamed = (isObject(properties) && Object.hasOwn(properties, name)) || (Array.isArray(required) && required.includes(name));
    const isAny = isObject(additionalProperties) || additionalProperties === true || "patternProperties" in one;
    // What a property takes says nothing of the whole.
    found ||= isNamed || (isAny && (one === schema || isComposed));
  });
  return found;
}
