import * as v from "valibot";
import { Count, looseText, Timestamp, text } from "./primitives.ts";

/** As ssh-keygen -l prints it: `SHA256:` and 43 characters. */
const Fingerprint = v.pipe(v.string(), v.regex(/^SHA256:[A-Za-z0-9+/]{43}$/, "must be SHA256: and 43 characters"));

/** One line of authorized_keys with an ed25519 key: type, base64, comment. */
export const PublicKeyLine = v.pipe(
  text(1_024),
  v.regex(/^ssh-ed25519 [A-Za-z0-9+/]+={0,2}(?: [^\p{Cc}]*)?$/u, "must be a public ed25519 key on one line"),
);

/** How long a key may be let in for, in seconds: a minute to ten years. */
export const KeyTtl = v.pipe(v.number(), v.integer(), v.minValue(60), v.maxValue(10 * 366 * 86_400));
/** How long both of a worker's keys may be known side by side, in seconds: no time to a year. */
const Overlap = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(366 * 86_400));

/** A desktop's key that a worker lets in. */
export const LinkClient = v.strictObject({
  fingerprint: Fingerprint,
  /** What the desktop calls itself. */
  comment: looseText(256),
  added_at: Timestamp,
  by: v.picklist(["bootstrap", "pairing"]),
  /** Null: never. */
  expires_at: v.nullable(Timestamp),
  expired: v.boolean(),
  /** Null: not yet. Kept to the minute. */
  last_used_at: v.nullable(Timestamp),
  /** Sessions that it has now; null where no worker runs that could tell. */
  sessions: v.nullable(Count),
});
export type LinkClient = v.InferOutput<typeof LinkClient>;

/** A host key that takes the place of the present one. */
export const NextHostKey = v.strictObject({ fingerprint: Fingerprint, since: Timestamp, switch_at: Timestamp });
export type NextHostKey = v.InferOutput<typeof NextHostKey>;

/** The keys of a worker's own sessions. */
export const LinkKeys = v.strictObject({
  schema_version: v.literal("clio-relay.link-keys.v1"),
  /** The worker's own; null where none was made yet. */
  host_key: v.nullable(Fingerprint),
  next_host_key: v.nullable(NextHostKey),
  keys: v.array(LinkClient),
});
export type LinkKeys = v.InferOutput<typeof LinkKeys>;

/** Which key is meant: its fingerprint, or a beginning of it that no other has. */
export const RevokeRequest = v.strictObject({ key: text(64) });
export const Revoked = v.strictObject({ revoked: LinkClient, ended_sessions: v.nullable(Count) });
export type Revoked = v.InferOutput<typeof Revoked>;

export const RotateRequest = v.strictObject({ overlap_seconds: Overlap });
export const Rotation = v.strictObject({
  /** `announced`: from `switch_at` on the new key answers. `switched`: it does now. `pending`: there is a new key already, and nothing was changed. */
  state: v.picklist(["announced", "switched", "pending"]),
  host_key: Fingerprint,
  /** The key before, where the new one answers now. */
  previous: v.nullable(Fingerprint),
  next_host_key: v.nullable(NextHostKey),
});
export type Rotation = v.InferOutput<typeof Rotation>;

export const PairRequest = v.strictObject({
  /** Address of the relay-host at which both meet; null: the one where the worker is. */
  relay_host: v.nullable(text(256)),
  /** How long the desktop's key is let in for; null: until it is revoked. */
  key_ttl_seconds: v.nullable(KeyTtl),
});
/** Holds a secret: it is shown once, and kept nowhere. */
export const PairingCodeMade = v.strictObject({
  code: text(512),
  expires_at: Timestamp,
  cluster: text(128),
  relay_host: text(256),
  host_key: Fingerprint,
});
export type PairingCodeMade = v.InferOutput<typeof PairingCodeMade>;
