import { createHash, timingSafeEqual } from "node:crypto";

/** A token without a scheme before it, for programs that cannot set Authorization. */
const OWN_FIELD = "x-clio-relay-token";

/**
 * Whether an Authorization field (RFC 6750, section 2.1) carries the token; the scheme is written in any case (RFC 9110, section 11.1). Takes the same time whatever the field says.
 *
 * @param authorization the field's value; null where there is none
 */
export const carriesToken = (authorization: string | null, token: string): boolean =>
  isSame(/^Bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? "", token);

/** What a request shows of a token, in Authorization or in X-Clio-Relay-Token. Of both, both must be right. */
export function shownToken(headers: Pick<Headers, "get">, token: string): "none" | "right" | "wrong" {
  const [authorization, own] = [headers.get("authorization"), headers.get(OWN_FIELD)];
  if (authorization === null && own === null) return "none";
  const right = (authorization === null || carriesToken(authorization, token)) && (own === null || isSame(own, token));
  return right ? "right" : "wrong";
}

/** Digests have one length, so that the comparison tells nothing of the token's. */
const isSame = (given: string, token: string): boolean => timingSafeEqual(digest(given), digest(token));
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Fields of a request that are for this process only, and are not handed on. */
export const CREDENTIALS: readonly string[] = ["authorization", OWN_FIELD];
