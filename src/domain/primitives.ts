import * as v from "valibot";
import { ID_PATTERN, isDeviceName } from "./id.ts";

/** A record identifier. */
export const Id = v.pipe(
  v.string(),
  v.regex(ID_PATTERN, "must match [a-z0-9][a-z0-9_-]{0,127}"),
  v.check((id) => !isDeviceName(id), "must not be a Windows device name"),
);

/** UTC instant, ISO 8601 with milliseconds and `Z` (as Date.prototype.toISOString writes it). */
export const Timestamp = v.pipe(
  v.string(),
  v.regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/, "must be an ISO 8601 UTC timestamp with milliseconds"),
);

/** SHA-256 as 64 lower-case hexadecimal digits. */
export const Sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits"));

/** Non-negative integer that JSON carries exactly. */
export const Count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** Number of bytes. */
export const ByteCount = Count;

/** A 1-based position in a sequence without gaps. */
export const Sequence = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

/** Finite number; NaN and infinities have no JSON form. */
export const Finite = v.pipe(v.number(), v.finite());

/** Text of at least one and at most `max` UTF-16 units. */
export const text = (max: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(max));

/** The same of one line: nothing in it that a terminal obeys, or that reorders text. */
export const plainText = (max: number) =>
  v.pipe(text(max), v.regex(/^[^\p{Cc}\p{Bidi_Control}]*$/u, "must not contain control characters"));

/** Text of at most `max` UTF-16 units, possibly empty. */
export const looseText = (max: number) => v.pipe(v.string(), v.maxLength(max));

/**
 * A JSON object with members of any name: its own members, all of them, in an object that inherits nothing, so that `constructor` and
 * `__proto__` are names like others. (v.record loses these, and keeps inherited ones.)
 */
export function recordOf<K extends v.GenericSchema<string, string>, V extends v.GenericSchema>(
  key: K,
  value: V,
): v.RecordSchema<K, V, undefined> {
  const plain = v.record(key, value) as unknown as v.RecordSchema<K, V, undefined>;
  const run: (typeof plain)["~run"] = (dataset, config) => {
    const input = dataset.value;
    // An array is refused by the schema that this is made of, or would be taken for an object.
    if (input === null || typeof input !== "object" || Array.isArray(input)) return plain["~run"]({ value: null }, config);
    const members: Record<string, unknown> = Object.create(null);
    const issues: v.BaseIssue<unknown>[] = [];
    let typed = true;
    for (const [name, member] of Object.entries(input)) {
      const at = { type: "object", input: input as Record<string, unknown>, key: name, value: member } as const;
      const named = key["~run"]({ value: name }, config);
      const held = value["~run"]({ value: member }, config);
      issues.push(...atPath(named.issues, { ...at, origin: "key" }), ...atPath(held.issues, { ...at, origin: "value" }));
      typed &&= named.typed === true && held.typed === true;
      if (named.typed === true) members[named.value as string] = held.value;
    }
    return { value: members, typed, ...(issues.length > 0 ? { issues } : {}) } as ReturnType<typeof run>;
  };
  return { ...plain, "~run": run };
}

function atPath(issues: readonly v.BaseIssue<unknown>[] | undefined, item: v.IssuePathItem): v.BaseIssue<unknown>[] {
  return (issues ?? []).map((issue) => ({ ...issue, path: [item, ...(issue.path ?? [])] }) as v.BaseIssue<unknown>);
}

/** Bytes that a value takes as JSON in UTF-8. */
export const jsonBytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;

/** Any JSON value, as it comes out of JSON.parse. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
/** A JSON object. An interface, so that the recursion stays shallow for the compiler. */
export interface JsonObject {
  [key: string]: Json;
}

/** Any JSON value. */
export const JsonValue: v.GenericSchema<Json> = v.union([
  v.null(),
  v.boolean(),
  Finite,
  v.string(),
  v.array(v.lazy((): v.GenericSchema<Json> => JsonValue)),
  recordOf(
    v.string(),
    v.lazy((): v.GenericSchema<Json> => JsonValue),
  ),
]);

/** Free-form JSON object that callers may attach to a record. */
export const Metadata: v.GenericSchema<JsonObject> = recordOf(v.pipe(v.string(), v.minLength(1), v.maxLength(128)), JsonValue);
export type Metadata = JsonObject;

/** A path or argument that reaches the operating system: NUL cannot be part of either. */
export const OsString = (max: number) =>
  v.pipe(
    v.string(),
    v.maxLength(max),
    v.check((s) => !s.includes("\0"), "must not contain NUL"),
  );
