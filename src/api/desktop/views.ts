import * as v from "valibot";
import { ClusterEntry } from "../../config/cluster-entry.ts";
import { ProcessIdentity } from "../../domain/attempt.ts";
import { Count, Id, looseText, Timestamp, text } from "../../domain/primitives.ts";

/** GET /status of the desktop daemon. */
export const DesktopStatus = v.strictObject({
  version: text(128),
  process: ProcessIdentity,
  started_at: Timestamp,
  /** Where it listens: the path of a Unix socket, or a URL on loopback. */
  socket: text(4_096),
  clusters: v.array(Id),
  /** Where the registry is kept. */
  clusters_file: text(4_096),
  /** Why the registry cannot be used; null when it can. */
  registry_error: v.nullable(looseText(2_000)),
  /** Requests that are being forwarded. */
  active_requests: Count,
});
export type DesktopStatus = v.InferOutput<typeof DesktopStatus>;

export const ClusterList = v.strictObject({ clusters: v.array(ClusterEntry) });
export const Stopping = v.strictObject({ stopping: v.literal(true) });
export const DesktopHealth = v.strictObject({ ok: v.literal(true), auth: v.boolean(), version: text(128) });
