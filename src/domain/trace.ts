import * as v from "valibot";

/** W3C Trace Context, section 3.2.2: version, trace-id, parent-id, trace-flags. A later version may have more behind it. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x21-\x7e]*)?$/;
const TRACEPARENT_MAX = 256;
/** Section 3.3.1.1: what is propagated at least, which here is also the most. */
const TRACESTATE_MAX = 512;
const MEMBERS_MAX = 32;
/** Section 3.3.1.5: a longer member goes first where there is not enough room. */
const LONG_MEMBER = 128;
const MEMBER = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])$/;

/** Where a job stands in a trace that others keep: two fields of W3C Trace Context as they came. */
export const TraceContext = v.strictObject({
  traceparent: v.pipe(v.string(), v.maxLength(TRACEPARENT_MAX), v.check(isTraceparent, "must be a traceparent")),
  tracestate: v.nullable(v.pipe(v.string(), v.minLength(1), v.maxLength(TRACESTATE_MAX), v.regex(/^[\x20-\x7e]+$/))),
});
export type TraceContext = v.InferOutput<typeof TraceContext>;

function isTraceparent(text: string): boolean {
  const [, version, trace, parent, more] = TRACEPARENT.exec(text) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return false;
  return !/^0+$/.test(trace!) && !/^0+$/.test(parent!);
}

/**
 * What of a caller's fields is to be kept. As the recommendation has it, a traceparent that is none counts as none, a tracestate that is none is left out, and one that is
 * too long loses whole members.
 *
 * @param traceparent the field's value; several of the name make none
 * @returns null where there is none
 */
export function traceContext(traceparent: string | undefined, tracestate: string | undefined): TraceContext | null {
  if (traceparent === undefined || traceparent.length > TRACEPARENT_MAX || !isTraceparent(traceparent)) return null;
  return { traceparent, tracestate: tracestate === undefined ? null : keptState(tracestate) };
}

function keptState(text: string): string | null {
  // Whoever sends more than this sends no tracestate.
  if (text.length > 64 * 1024) return null;
  const members = text
    .split(",")
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  const keys = members.map((member) => MEMBER.exec(member)?.[1]);
  if (members.length === 0 || members.length > MEMBERS_MAX || keys.includes(undefined) || new Set(keys).size < keys.length) return null;
  const long = members.filter((member) => member.length > LONG_MEMBER);
  const room = (): boolean => members.join(",").length <= TRACESTATE_MAX;
  for (const member of long.toReversed()) if (!room()) members.splice(members.indexOf(member), 1);
  while (!room()) members.pop();
  return members.length === 0 ? null : members.join(",");
}
