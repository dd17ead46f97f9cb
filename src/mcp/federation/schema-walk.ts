/** A JSON Schema that is an object, of whatever dialect. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Keywords whose value is data, and no schema, whatever it looks like. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "examples", "required", "dependentRequired"]);
/** Keywords whose members are schemas under names of the author's own. */
const BY_NAME: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);

export const isObject = (value: unknown): value is JsonSchema => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Make a schema anew, with each one within it. What is not known to be data is taken for a schema, since a reference may lead there. A schema within it that is a document of its own
 * stays as it is.
 *
 * @param change of the members of one schema; not called for data, nor for names of properties
 */
export function mapSchema(schema: JsonSchema, change: (schema: JsonSchema) => JsonSchema): JsonSchema {
  const within = (value: unknown): unknown => (isObject(value) && !hasOwnId(value) ? mapSchema(value, change) : value);
  const members = Object.entries(change(schema)).map(([name, value]): [string, unknown] => {
    if (DATA.has(name)) return [name, value];
    if (BY_NAME.has(name) && isObject(value)) {
      return [name, Object.fromEntries(Object.entries(value).map(([key, one]) => [key, within(one)]))];
    }
    return [name, Array.isArray(value) ? value.map(within) : within(value)];
  });
  return Object.fromEntries(members);
}

/** Call `visit` for a schema and each one within it. @param own whether the schema belongs to the document, and is not one with an id of its own within it */
export function visitSchemas(schema: JsonSchema, visit: (schema: JsonSchema, own: boolean) => void, own = true): void {
  visit(schema, own);
  for (const [name, value] of Object.entries(schema)) {
    if (DATA.has(name)) continue;
    const inner = BY_NAME.has(name) && isObject(value) ? Object.values(value) : Array.isArray(value) ? value : [value];
    for (const one of inner) if (isObject(one)) visitSchemas(one, visit, own && !hasOwnId(one));
  }
}

/** Whether a schema is a document of its own: an `$id`, or `id` of draft 4, that is more than a fragment. */
export const hasOwnId = (schema: JsonSchema): boolean =>
  [schema["$id"], schema["id"]].some((id) => typeof id === "string" && id !== "" && !id.startsWith("#"));

/** What a JSON pointer in a URI fragment (RFC 6901, section 6) leads to; undefined where it leads nowhere. @param fragment behind the `#` */
export function atPointer(document: unknown, fragment: string): unknown {
  if (fragment === "") return document;
  if (!fragment.startsWith("/")) return undefined;
  let at: unknown = document;
  for (const token of fragment.slice(1).split("/")) {
    const name = unescaped(token);
    if (name === null || at === null || typeof at !== "object" || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}

function unescaped(token: string): string | null {
  try {
    return decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null;
  }
}
