/** What became of a pairing code; `open` while it can be used. */
export type PairingFate = "open" | "used" | "expired" | "tries";

/** How the user's name begins of a desktop that is being paired (docs/wire.md, Pairing). */
export const PAIR_USER = "pair.";
/** Of what a desktop calls itself, in bytes. */
export const COMMENT_BYTES = 64;

/** Said as a method that can continue to whoever has proven a key that was let in, and has expired. */
export const keyExpired = "key-expired@clio-relay";

/** Said to whoever has proven to have the secret of a code that can no longer be used. */
export const pairingOver = (fate: Exclude<PairingFate, "open">): string => `pairing-${fate}@clio-relay`;

const FATES: ReadonlyMap<string, Exclude<PairingFate, "open">> = new Map(
  (["used", "expired", "tries"] as const).map((fate) => [pairingOver(fate), fate]),
);

/** What a server has said of the pairing code among the methods that can continue; null where it said nothing of it. */
export const fateAmong = (methods: readonly unknown[]): Exclude<PairingFate, "open"> | null =>
  methods.map((method) => FATES.get(String(method))).find((fate) => fate !== undefined) ?? null;

/** The user's name of a desktop that is being paired. @param fingerprint of its own key, as ssh-keygen -l shows it */
export function pairUser(fingerprint: string, comment: string): string {
  const key = Buffer.from(fingerprint.replace("SHA256:", ""), "base64").toString("base64url");
  return `${PAIR_USER}${key}.${Buffer.from(comment).subarray(0, COMMENT_BYTES).toString("base64url")}`;
}

/** The reverse: what comes is from outside. Null where it is no such name. */
export function pairUserOf(user: string): { readonly fingerprint: string; readonly comment: string } | null {
  const [, key, text] = /^pair\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{0,86})$/.exec(user) ?? [];
  if (key === undefined || text === undefined) return null;
  const fingerprint = `SHA256:${Buffer.from(key, "base64url").toString("base64").replace(/=+$/, "")}`;
  return { fingerprint, comment: Buffer.from(text, "base64url").toString("utf8") };
}
