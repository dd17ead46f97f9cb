import * as v from "valibot";
import { ClusterEntry, MODES } from "../config/cluster-entry.ts";
import { ProcessIdentity } from "../domain/attempt.ts";
import { Count, Id, looseText, Timestamp, text } from "../domain/primitives.ts";

/** GET /status of the desktop daemon. */
export const DesktopStatus = v.strictObject({
  version: text(128),
  process: ProcessIdentity,
  started_at: Timestamp,
  /** Where it listens: the path of a Unix socket, or a URL on loopback. */
  socket: text(4_096),
  clusters: v.array(Id),
  /** Why the registry cannot be used; null when it can. */
  registry_error: v.nullable(looseText(2_000)),
  /** Requests that are being forwarded. */
  active_requests: Count,
});
export type DesktopStatus = v.InferOutput<typeof DesktopStatus>;

export const LINK_STATES = ["down", "connecting", "authorization_required", "up", "degraded", "dropped"] as const;

/** What is known of the way to a cluster's worker. */
export const LinkStatus = v.strictObject({
  cluster: Id,
  mode: v.picklist(MODES),
  /** up: the worker answered just now. degraded: it is there and does not answer. down: nobody is there. */
  state: v.picklist(LINK_STATES),
  /** Duration of the last round trip, in milliseconds; null when there was none. */
  round_trip_ms: v.nullable(v.number()),
  /** Version of the worker; null while it is not known. */
  worker_version: v.nullable(text(128)),
  detail: v.nullable(looseText(2_000)),
});
export type LinkStatus = v.InferOutput<typeof LinkStatus>;

export const ClusterList = v.strictObject({ clusters: v.array(ClusterEntry) });
export const LinkList = v.strictObject({ links: v.array(LinkStatus) });
export const Stopping = v.strictObject({ stopping: v.literal(true) });
export const DesktopHealth = v.strictObject({ ok: v.literal(true), auth: v.boolean(), version: text(128) });
