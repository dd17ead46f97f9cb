import { JSON_BOUNDS } from "../json-bounds.ts";
import { atPointer, isObject, type JsonSchema, visitSchemas } from "./schema-walk.ts";

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
  const missing = danglingReference(schema);
  return missing === null ? null : `its reference ${JSON.stringify(missing.slice(0, 200))} leads nowhere`;
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

/** A reference within the document that leads nowhere in it; null where there is none. Those to other documents are for whoever follows them. */
function danglingReference(schema: JsonSchema): string | null {
  const anchors = new Set<string>();
  visitSchemas(schema, (one) => {
    for (const name of [one["$anchor"], one["$dynamicAnchor"]]) if (typeof name === "string") anchors.add(name);
    for (const id of [one["$id"], one["id"]]) if (typeof id === "string" && id.startsWith("#")) anchors.add(id.slice(1));
  });
  let dangling: string | null = null;
  visitSchemas(schema, (one, own) => {
    const { $ref } = one;
    if (!own || dangling !== null || typeof $ref !== "string" || !$ref.startsWith("#")) return;
    const fragment = $ref.slice(1);
    if (!anchors.has(fragment) && atPointer(schema, fragment) === undefined) dangling = $ref;
  });
  return dangling;
}
