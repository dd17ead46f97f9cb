/** Fields that belong to one connection, besides those that its Connection field names (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** A copy with the end-to-end fields only. */
export function endToEnd(headers: Headers): Headers {
  const kept = new Headers(headers);
  const named = (headers.get("connection") ?? "").split(",").map((name) => name.trim());
  for (const name of [...HOP_BY_HOP, ...named]) if (/^[\w-]+$/.test(name)) kept.delete(name);
  return kept;
}
