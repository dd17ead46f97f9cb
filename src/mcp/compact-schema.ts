import { isObject, type JsonSchema, mapSchema } from "./federation/schema-walk.ts";

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

/** Whether a keyword says nothing: no number that JSON carries exactly is larger, and every object has no members of no list. */
const isIdle = ([name, value]: readonly [string, unknown]): boolean =>
  (name === "maximum" && value === Number.MAX_SAFE_INTEGER) || (name === "required" && Array.isArray(value) && value.length === 0);

const speaking = (schema: JsonSchema): JsonSchema => Object.fromEntries(Object.entries(schema).filter((one) => !isIdle(one)));

const isNull = (schema: unknown): boolean => isObject(schema) && schema["type"] === "null";

/** The alternative to null, where there is exactly one. */
function otherThanNull(schema: JsonSchema): JsonSchema | null {
  const { anyOf } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || !anyOf.some(isNull)) return null;
  const other: unknown = anyOf.find((one) => !isNull(one));
  return isObject(other) ? other : null;
}

/** An agent's context holds every schema: what says nothing to it is left out. Of arguments: whoever has nothing to say leaves them out, so that null is not spoken of. */
export const forInput = (schema: JsonSchema): JsonSchema =>
  mapSchema(schema, (one) => {
    const other = otherThanNull(one);
    if (other === null) return speaking(one);
    const { anyOf: _both, default: fallback, ...rest } = one;
    return speaking({ ...other, ...rest, ...(fallback === null || fallback === undefined ? {} : { default: fallback }) });
  });

/** Of answers: their bounds are this program's own matter. */
export const forOutput = (schema: JsonSchema): JsonSchema =>
  mapSchema(schema, (one) => {
    const other = otherThanNull(one);
    const { anyOf: _both, ...rest } = one;
    const plain = other !== null && typeof other["type"] === "string" && !("enum" in other);
    const merged = plain ? { ...other, ...rest, type: [other["type"], "null"] } : one;
    return Object.fromEntries(Object.entries(merged).filter((member) => !BOUNDS.has(member[0]) && !isIdle(member)));
  });
