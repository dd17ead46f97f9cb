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
  return wrong === null ? null : `its reference ${JSON.stringify(String(wrong.$ref).slice(0, 200))} leads ${wrong.leads}`;
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
  readonly $ref: unknown;
  readonly leads: "nowhere" | "back to itself" | "to another document";
}

/**
 * A reference that leads to no schema of the document; null where there is none. One to a document elsewhere has a client fetch what the server names, or refuse the tool, and some
 * interfaces of models all tools with it.
 */
function wrongReference(schema: JsonSchema): WrongReference | null {
  const anchors = anchorsOf(schema);
  const documents = documentsOf(schema);
  let wrong: WrongReference | null = null;
  visitSchemas(schema, ({ $ref, $dynamicRef }, own) => {
    for (const one of [$ref, $dynamicRef]) {
      if (one === undefined || wrong !== null) continue;
      if (!isLocal(one)) wrong = isWithin(documents, one) ? null : { $ref: one, leads: "to another document" };
      else if (own) wrong = problemOf(one);
    }
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

/** Ids that are looked at for what a relative reference begins at. */
const BASES = 16;

/** The ids of the documents in one, as far as they are URLs. */
function documentsOf(schema: JsonSchema): ReadonlySet<string> {
  const documents = new Set<string>();
  visitSchemas(schema, (one) => {
    for (const id of [one["$id"], one["id"]]) if (typeof id === "string") for (const url of urlsOf(documents, id)) documents.add(url);
  });
  return documents;
}

/** Where a reference may lead, by the document that it stands in; without its fragment. */
const urlsOf = (bases: ReadonlySet<string>, $ref: string): string[] =>
  [undefined, ...[...bases].slice(0, BASES)].flatMap((base) => {
    const url = URL.parse($ref, base);
    return url === null ? [] : [url.href.slice(0, url.href.length - url.hash.length)];
  });

const isWithin = (documents: ReadonlySet<string>, $ref: unknown): boolean =>
  typeof $ref === "string" && urlsOf(documents, $ref).some((url) => documents.has(url));

const isLocal = ($ref: unknown): $ref is string => typeof $ref === "string" && $ref.startsWith("#");

function anchorsOf(schema: JsonSchema): ReadonlyMap<string, JsonSchema> {
  const anchors = new Map<string, JsonSchema>();
  visitSchemas(schema, (one) => {
    for (const name of [one["$anchor"], one["$dynamicAnchor"]]) if (typeof name === "string") anchors.set(name, one);
    for (const id of [one["$id"], one["id"]]) if (typeof id === "string" && id.startsWith("#")) anchors.set(id.slice(1), one);
  });
  return anchors;
}
