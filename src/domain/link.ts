import * as v from "valibot";
import { PublicKeyLine } from "./link-keys.ts";
import { Count, Id, plainText, Timestamp, text } from "./primitives.ts";

/** What this version speaks on a link, and the oldest that it still speaks. One number for all that a request may mean to the other side. */
export const PROTOCOL = 1;
export const OLDEST_PROTOCOL = 1;

export const LINK_STATES = ["down", "connecting", "authorization_required", "up", "degraded", "dropped"] as const;
export type LinkState = (typeof LINK_STATES)[number];

/** GET /link: who answers, and what it speaks. */
export const LinkInfo = v.strictObject({
  protocol: Count,
  oldest_protocol: Count,
  version: plainText(128),
  cluster: Id,
  /** Stays the same for as long as the cluster's state directory does. */
  worker_id: Id,
  host: v.strictObject({ hostname: plainText(255), boot_id: plainText(64) }),
  started_at: Timestamp,
  /** Fingerprint of the key by which the worker's own sessions are known; null where it has none. */
  host_key: v.nullable(text(64)),
  /** The public key that takes its place, as a line of authorized_keys; null where none is announced. */
  next_host_key: v.optional(v.nullable(PublicKeyLine), null),
});
export type LinkInfo = v.InferOutput<typeof LinkInfo>;

/** The same as a reader of another version takes it: members that it does not know are passed over. */
export const ReceivedLinkInfo = v.object(LinkInfo.entries);

/** Which side has to be upgraded before the two understand each other; null where they do. */
export function outdatedSide(worker: Pick<LinkInfo, "protocol" | "oldest_protocol">): "worker" | "desktop" | null {
  if (worker.protocol < OLDEST_PROTOCOL) return "worker";
  return worker.oldest_protocol > PROTOCOL ? "desktop" : null;
}
