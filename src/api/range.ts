import { RelayError } from "../domain/errors.ts";

/** A part of some content: bytes [start, end). */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Read a Range header (RFC 9110, section 14.2) against content of `size` bytes. Null: no range, or one that this server
 * may ignore (another unit, several ranges, bad syntax). A range outside the content is refused.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return null;
  const first = match[1] === "" ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const last = match[1] === "" || match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[1] !== "" && match[2] !== "" && Number(match[2]) < Number(match[1])) return null;
  if (first >= size || (match[1] === "" && Number(match[2]) === 0)) {
    throw new RelayError("range_not_satisfiable", `the content has ${size} bytes`, { size_bytes: size });
  }
  return { start: first, end: last + 1 };
}

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
