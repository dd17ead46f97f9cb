import { JSON_BOUNDS } from "../json-bounds.ts";
import { atPointer, hasOwnId, isObject, type JsonSchema, visitSchemas } from "./schema-walk.ts";

/** What one schema takes at most, as JSON. */
const SCHEMA_BYTES = 256 * 1024;

/** What keeps a server's input schema from being shown to a client; null where nothing does. */
export function inputSchemaProblem(schema: unknown): string | null {
  if (!isObject(schema)) return "it is no object";
  if (depthOf(schema) > JSON_BOUNDS.depth) return `it is nested deeper than ${JSON_BOUNDS.depth} levels`;
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > SCHEMA_BYTES) return `it takes ${bytes} bytes, and may take ${SCHEMA_BYTES}`;
  if (schema["type"] !== "object") return "its type is not object";
  const { properties, required } = schema;
  if (properties !== undefined && !isObject(properties)) return "its properties are no object";
  if (!Object.values(properties ?? {}).every((one) => isObject(one) || typeof one === "boolean"))
    return "one of its properties is no schema";
  if (required !== undefined && !isNames(required)) return "its required are no list of names";
  const wrong = wrongReference(schema);
  return wrong === null ? null : `its reference ${JSON.stringify(wrong.$ref.slice(0, 200))} leads ${wrong.leads}`;
}

const isNames = (value: unknown): boolean => Array.isArray(value) && value.every((one) => typeof one === "string");

/** Levels of a JSON value, without recursion: it may have any number. */
function depthOf(value: object): number {
  let level: object[] = [value];
  for (let depth = 1; ; depth++) {
    const next = level.flatMap((one) => Object.values(one).filter((inner): inner is object => inner !== null && typeof inner === "object"));
    if (next.length === 0 || depth > JSON_BOUNDS.depth) return depth;
    level = next;
  }
}

interface WrongReference {
  readonly $ref: string;
  readonly leads: "nowhere" | "back to itself";
}

/** A reference within the document that leads to no schema in it; null where there is none. Those to other documents are for whoever follows them. */
function wrongReference(schema: JsonSchema): WrongReference | null {
  const anchors = anchorsOf(schema);
  let wrong: WrongReference | null = null;
  visitSchemas(schema, ({ $ref }, own) => {
    if (own && wrong === null && isLocal($ref)) wrong = problemOf($ref);
  });
  return wrong;

  function problemOf($ref: string): WrongReference | null {
    const passed = new Set<string>();
    for (let at: unknown = $ref; isLocal(at); ) {
      if (passed.has(at)) return { $ref, leads: "back to itself" };
      passed.add(at);
      const fragment = at.slice(1);
      const target = anchors.get(fragment) ?? atPointer(schema, fragment);
      if (target === undefined) return { $ref, leads: "nowhere" };
      // A document of its own has its own references.
      at = isObject(target) && (target === schema || !hasOwnId(target)) ? target["$ref"] : null;
    }
    return null;
  }
}

const isLocal = ($ref: unknown): $ref is string => typeof $ref === "string" && $ref.startsWith("#");

function anchorsOf(schema: JsonSchema): ReadonlyMap<string, JsonSchema> {
  const anchors = new Map<string, JsonSchema>();
  visitSchemas(schema, (one) => {
    for (const name of [one["$anchor"], one["$dynamicAnchor"]]) if (typeof name === "string") anchors.set(name, one);
    for (const id of [one["$id"], one["id"]]) if (typeof id === "string" && id.startsWith("#")) anchors.set(id.slice(1), one);
  });
  return anchors;
}
