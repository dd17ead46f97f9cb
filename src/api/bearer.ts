import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Whether an Authorization field (RFC 6750, section 2.1) carries the token; the scheme is written in any case (RFC 9110, section 11.1). Takes the same time whatever the field says.
 *
 * @param authorization the field's value; null where there is none
 */
export function carriesToken(authorization: string | null, token: string): boolean {
  const given = /^Bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? "";
  const digest = (text: string) => createHash("sha256").update(text).digest();
  // Digests have one length, so that the comparison tells nothing of the token's.
  return timingSafeEqual(digest(given), digest(token));
}
