import type { AnswerHead } from "./head.ts";

/** Fields that belong to one connection, besides those that its Connection field names (RFC 9110, section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Tells end-to-end fields from those of one connection.
 *
 * @param connection the value of the message's Connection field
 * @returns whether a field, in lower case, goes on
 */
export function endToEndFilter(connection: string | null): (name: string) => boolean {
  if (connection === null) return (name) => !HOP_BY_HOP.has(name);
  const named = connection.split(",").map((name) => name.trim().toLowerCase());
  return (name) => !HOP_BY_HOP.has(name) && !named.includes(name);
}

/** A copy with the end-to-end fields only. */
export function endToEnd(headers: Headers): Headers {
  const kept = new Headers();
  const goesOn = endToEndFilter(headers.get("connection"));
  headers.forEach((value, name) => {
    if (goesOn(name)) kept.append(name, value);
  });
  return kept;
}

/** The end-to-end fields of an answer. */
export function headersOf(head: AnswerHead): Headers {
  const headers = new Headers();
  const goesOn = endToEndFilter(head.said.connection[0] ?? null);
  for (const [name, value] of head.fields) if (goesOn(name)) headers.append(name, value);
  return headers;
}
