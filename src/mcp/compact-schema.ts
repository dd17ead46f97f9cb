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

/** Whether a keyword says nothing: no number that JSON carries exactly is larger, every object has no members of no list, and its members are called by texts. */
const isIdle = ([name, value]: readonly [string, unknown]): boolean =>
  (name === "maximum" && value === Number.MAX_SAFE_INTEGER) ||
  (name === "required" && Array.isArray(value) && value.length === 0) ||
  (name === "additionalProperties" && isObject(value) && Object.keys(value).length === 0) ||
  (name === "propertyNames" && isObject(value) && Object.keys(value).length === 1 && value["type"] === "string");

/** Bounds that no agent comes near, and forms that a description says in words: whoever does not keep to them is told when the arguments are read. */
const FAR = { maxLength: 1_024, maxItems: 100, maximum: 1_000_000 } as const;

/** Whether a keyword of an argument is of use to whoever is to give it. */
const isOfUse = ([name, value]: readonly [string, unknown]): boolean => {
  if (name === "pattern" || name === "propertyNames") return false;
  if (name === "minLength" || name === "minimum") return value !== 0 && value !== 1;
  if (name === "default") return !Bun.deepEquals(value, []) && !Bun.deepEquals(value, {});
  return !(name in FAR) || (value as number) < FAR[name as keyof typeof FAR];
};

const forAgents = (schema: JsonSchema): JsonSchema => Object.fromEntries(Object.entries(speaking(schema)).filter(isOfUse));

const speaking = (schema: JsonSchema): JsonSchema => Object.fromEntries(Object.entries(schema).filter((one) => !isIdle(one)));

/** Every type that JSON has (RFC 8259, section 3). */
const TYPES = ["array", "boolean", "null", "number", "object", "string"];

/** Whether alternatives are those of any JSON: one for each of its types, whose members are such again. @param self reference to them */
function isAnyJson(anyOf: unknown, self: (ref: unknown) => boolean): boolean {
  if (!Array.isArray(anyOf)) return false;
  const alternatives = anyOf.filter(isObject);
  const within = alternatives
    .flatMap(({ items, additionalProperties }) => [items, additionalProperties])
    .filter((one) => one !== undefined);
  const isFree = alternatives.every((one) =>
    Object.keys(one).every((name) => ["type", "items", "additionalProperties", "propertyNames"].includes(name)),
  );
  return (
    isFree &&
    within.every((one) => isObject(one) && self(one["$ref"])) &&
    Bun.deepEquals(alternatives.map(({ type }) => type).sort(), TYPES)
  );
}

/** Definitions of any JSON take the room of six alternatives to say nothing. */
function withoutAnyJson(schema: JsonSchema): JsonSchema {
  const definitions = isObject(schema["$defs"]) ? Object.entries(schema["$defs"]) : [];
  const any = new Set(
    definitions.flatMap(([name, definition]) => {
      const own = `#/$defs/${name}`;
      const isAny = isObject(definition) && Object.keys(definition).length === 1 && isAnyJson(definition["anyOf"], (ref) => ref === own);
      return isAny ? [own] : [];
    }),
  );
  if (any.size === 0) return schema;
  const isAny = (ref: unknown): boolean => any.has(ref as string);
  const { $defs: _all, ...rest } = schema;
  const left = definitions.filter(([name]) => !isAny(`#/$defs/${name}`));
  return mapSchema(left.length === 0 ? rest : { ...rest, $defs: Object.fromEntries(left) }, (one) => {
    const { $ref, anyOf, ...besides } = one;
    return isAny($ref) || isAnyJson(anyOf, isAny) ? besides : one;
  });
}

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
  mapSchema(withoutAnyJson(schema), (one) => {
    const other = otherThanNull(one);
    if (other === null) return forAgents(one);
    const { anyOf: _both, default: fallback, ...rest } = one;
    return forAgents({ ...other, ...rest, ...(fallback === null || fallback === undefined ? {} : { default: fallback }) });
  });

/** Of a list of so many values it is said that they are texts: the answer has the one that holds. */
const VALUES = 6;

/** What an answer has sometimes only is told without its parts, as an object or a list. */
function withoutParts(schema: JsonSchema): JsonSchema {
  const { properties, required } = schema;
  if (!isObject(properties) || !Array.isArray(required)) return schema;
  const short = ([name, member]: [string, unknown]): [string, unknown] => {
    if (required.includes(name) || !isObject(member)) return [name, member];
    const { properties: _parts, additionalProperties: _closed, required: _always, items: _items, ...rest } = member;
    return [name, rest];
  };
  return { ...schema, properties: Object.fromEntries(Object.entries(properties).map(short)) };
}

/**
 * Of answers: their bounds are this program's own matter, and so is which members parts of them always have; a short list of values says of what type they are. Clients hold each answer
 * against it, and some of them put it before a model with every tool.
 */
export const forOutput = (schema: JsonSchema): JsonSchema => {
  const whole = withoutParts(withoutAnyJson(schema));
  return mapSchema(whole, (one) => {
    if (Array.isArray(one["enum"]) && one["enum"].length > VALUES) return textOf(one);
    const isTold = ([name]: readonly [string, unknown]): boolean =>
      BOUNDS.has(name) || (name === "required" && one !== whole) || (name === "type" && "enum" in one);
    return Object.fromEntries(Object.entries(one).filter((member) => !isTold(member) && !isIdle(member)));
  });
};

const textOf = ({ description }: JsonSchema): JsonSchema => ({ type: "string", ...(description === undefined ? {} : { description }) });
