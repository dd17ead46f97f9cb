/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 units, no white space, numbers and strings as
 * JSON.stringify writes them. Members whose value is undefined are left out.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value !== "object") {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`not a JSON value: ${typeof value}`);
    return text;
  }
  let text = "";
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) text += (i === 0 ? "" : ",") + canonicalJson(value[i]);
    return `[${text}]`;
  }
  const members = value as Readonly<Record<string, unknown>>;
  // Without a comparison of its own, sort() goes by UTF-16 units.
  for (const key of Object.keys(members).sort()) {
    const member = members[key];
    if (member !== undefined) text += `${text === "" ? "" : ","}${quoted(key)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
}

/** Text of which JSON escapes nothing; looking costs less than asking for it. */
const PLAIN = /^[ !#-[\]-~]*$/;

const quoted = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text));

/** SHA-256 of bytes or of a string's UTF-8, as 64 hexadecimal digits. */
export const sha256Hex = (data: string | Uint8Array): string => Bun.SHA256.hash(data, "hex");
