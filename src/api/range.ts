import { RelayError } from "../domain/errors.ts";

/** A part of some content: bytes [start, end). */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Read a Range header (RFC 9110, sections 14.1 and 14.2) against content of `size` bytes. Null: no range, or one that this server may ignore (another unit, several
 * ranges, bad syntax, the end of nothing). A range outside the content is refused.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | null {
  const set = /^bytes=(.*)$/is.exec(header?.trim() ?? "")?.[1] ?? "";
  // A list may have empty elements (section 5.6.1).
  const [spec = "", ...others] = set
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  const [, from, to] = /^(\d*)-(\d*)$/.exec(spec) ?? [];
  if (others.length > 0 || from === undefined || to === undefined || `${from}${to}` === "") return null;
  if (from === "") {
    if (Number(to) === 0) throw outside(size);
    return size === 0 ? null : { start: Math.max(0, size - Number(to)), end: size };
  }
  const [first, last] = [Number(from), to === "" ? Number.POSITIVE_INFINITY : Number(to)];
  if (last < first) return null;
  if (first >= size) throw outside(size);
  return { start: first, end: Math.min(last, size - 1) + 1 };
}

const outside = (size: number): RelayError =>
  new RelayError("range_not_satisfiable", `the content has ${size} bytes`, { size_bytes: size });

/** Whether a list of entity tags names this one, by the weak comparison of If-None-Match (RFC 9110, section 13.1.2). */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === "*" || header.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/** The strong comparison of If-Match (RFC 9110, section 13.1.1). */
const namesExactly = (header: string, etag: string | null): boolean => header.split(",").some((tag) => tag.trim() === etag);

/**
 * Hold a change to the conditions of its request.
 *
 * @param etag the strong entity tag of what is to be changed; null when there is nothing yet
 * @throws RelayError precondition_failed
 */
export function checkUnchanged(header: (name: string) => string | undefined, etag: string | null): void {
  const match = header("if-match");
  const held = match === undefined || (match.trim() === "*" ? etag !== null : namesExactly(match, etag));
  if (held && (etag === null || !matchesEtag(header("if-none-match"), etag))) return;
  throw new RelayError("precondition_failed", etag === null ? "there is none yet" : `it is ${etag} by now`, etag === null ? {} : { etag });
}

/** Request headers that these routes know. */
export const CONDITIONS = {
  Range: "one byte range",
  "If-Range": "entity tag of the content that the range is of; of another, all of it is sent",
  "If-Match": "entity tags that will do",
  "If-None-Match": "entity tags that the client has",
};

/** Reads the conditions of a request. A Range is one of a GET, and means nothing with anything else (RFC 9110, section 14.2). */
export const conditionsOf =
  ({ method, headers }: Request) =>
  (name: string): string | undefined =>
    name === "range" && method !== "GET" ? undefined : (headers.get(name) ?? undefined);

/** What a request asks of content: nothing, because it has it already, or a part, or all of it (null). */
export type Wanted = "unchanged" | ByteRange | null;

/**
 * Read the conditions of a request in the order of RFC 9110, section 13.2.2.
 *
 * @param etag the content's strong entity tag; null for content that still changes, which no tag names
 * @throws RelayError precondition_failed, range_not_satisfiable
 */
export function wantedOf(header: (name: string) => string | undefined, size: number, etag: string | null): Wanted {
  const match = header("if-match");
  if (match !== undefined && match.trim() !== "*" && !namesExactly(match, etag)) {
    throw new RelayError("precondition_failed", `the content is ${etag ?? "still growing"}`, etag === null ? {} : { etag });
  }
  if (etag !== null && matchesEtag(header("if-none-match"), etag)) return "unchanged";
  const condition = header("if-range");
  // Dates are not given out, so that none is the right one.
  return condition === undefined || condition.trim() === etag ? parseRange(header("range"), size) : null;
}

/** Headers of an answer that carries bytes [start, end) of `size`. */
export function contentHeaders(size: number, range: ByteRange | null, etag: string | null): Record<string, string> {
  const part = range ?? { start: 0, end: size };
  return {
    "accept-ranges": "bytes",
    "content-length": String(part.end - part.start),
    ...(range === null ? {} : { "content-range": `bytes ${part.start}-${part.end - 1}/${size}` }),
    ...(etag === null ? {} : { etag }),
  };
}
