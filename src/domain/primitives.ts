import * as v from "valibot";

/** Identifier grammar shared by every record: lower case, digits, `_` and `-`, at most 128 characters. */
export const ID_PATTERN = /^[a-z0-9][a-z0-9_-]{0,127}$/;

const WINDOWS_DEVICE_NAME = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])$/;

/** A record identifier. Device names are refused because identifiers become file names. */
export const Id = v.pipe(
  v.string(),
  v.regex(ID_PATTERN, "must match [a-z0-9][a-z0-9_-]{0,127}"),
  v.check((id) => !WINDOWS_DEVICE_NAME.test(id), "must not be a Windows device name"),
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

/** Text of at most `max` UTF-16 units, possibly empty. */
export const looseText = (max: number) => v.pipe(v.string(), v.maxLength(max));

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
  v.record(
    v.string(),
    v.lazy((): v.GenericSchema<Json> => JsonValue),
  ),
]);

/** Free-form JSON object that callers may attach to a record. */
export const Metadata: v.GenericSchema<JsonObject> = v.record(v.pipe(v.string(), v.minLength(1), v.maxLength(128)), JsonValue);
export type Metadata = JsonObject;

/** A path or argument that reaches the operating system: NUL cannot be part of either. */
export const OsString = (max: number) =>
  v.pipe(
    v.string(),
    v.maxLength(max),
    v.check((s) => !s.includes("\0"), "must not contain NUL"),
  );
