/** A JSON Schema, as far as this program makes one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a client needs to know of arguments only. */
const BOUNDS: ReadonlySet<string> = new Set([
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "propertyNames",
]);

const isObject = (value: unknown): value is JsonSchema => value !== null && typeof value === "object" && !Array.isArray(value);
const isNull = (schema: unknown): boolean => isObject(schema) && schema["type"] === "null";

/** The alternative to null, where there is exactly one. */
function otherThanNull(schema: JsonSchema): JsonSchema | null {
  const { anyOf } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || !anyOf.some(isNull)) return null;
  const other: unknown = anyOf.find((one) => !isNull(one));
  return isObject(other) ? other : null;
}

/** An agent's context holds every schema: what says nothing to it is left out. Members of `properties` are schemas, whatever they are called. */
function walk(schema: JsonSchema, change: (schema: JsonSchema) => JsonSchema): JsonSchema {
  const members = Object.entries(change(schema)).map(([name, value]): [string, unknown] => {
    if (name === "properties" && isObject(value)) {
      return [
        name,
        Object.fromEntries(Object.entries(value).map(([property, one]) => [property, isObject(one) ? walk(one, change) : one])),
      ];
    }
    // Data, not schemas.
    if (name === "default" || name === "enum" || name === "const" || name === "examples") return [name, value];
    if (Array.isArray(value)) return [name, value.map((one: unknown) => (isObject(one) ? walk(one, change) : one))];
    return [name, isObject(value) ? walk(value, change) : value];
  });
  return Object.fromEntries(members);
}

/** Of arguments: whoever has nothing to say leaves them out, so that null is not spoken of. */
export const forInput = (schema: JsonSchema): JsonSchema =>
  walk(schema, (one) => {
    const other = otherThanNull(one);
    if (other === null) return one;
    const { anyOf: _both, default: fallback, ...rest } = one;
    return { ...other, ...rest, ...(fallback === null || fallback === undefined ? {} : { default: fallback }) };
  });

/** Of answers: their bounds are this program's own matter. */
export const forOutput = (schema: JsonSchema): JsonSchema =>
  walk(schema, (one) => {
    const other = otherThanNull(one);
    const { anyOf: _both, ...rest } = one;
    const plain = other !== null && typeof other["type"] === "string" && !("enum" in other);
    const merged = plain ? { ...other, ...rest, type: [other["type"], "null"] } : one;
    return Object.fromEntries(Object.entries(merged).filter(([name]) => !BOUNDS.has(name)));
  });
