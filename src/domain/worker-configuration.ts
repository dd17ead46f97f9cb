import * as v from "valibot";
import { Slots } from "./endpoint.ts";
import { CA_MAX, FrpOffering } from "./frp.ts";
import { KeyTtl, PublicKeyLine } from "./link-keys.ts";
import { Id, looseText, text } from "./primitives.ts";
import { SchedulerChoice } from "./scheduler.ts";
import { WORKER_PROGRAMS } from "./worker-programs.ts";

/** Bound of the document below, in bytes. */
export const CONFIGURATION_MAX_BYTES = 256 * 1024;

/** What a desktop sends to the host of a cluster, as the worker there is to have it. */
export const WorkerConfiguration = v.strictObject({
  schema_version: v.literal("clio-relay.worker-configuration.v1"),
  cluster: Id,
  /** Shell text that runs before every job. */
  env_setup: v.nullable(looseText(64 * 1024)),
  /** Whether a command of it that fails, fails the job. Left out: no. */
  env_setup_strict: v.exactOptional(v.boolean()),
  worker_capacity: Slots,
  /** The scheduler that jobs may ask for. Left out: none. */
  scheduler_provider: v.exactOptional(SchedulerChoice),
  /** Programs that jobs are run with. Left out: what the worker's own settings say. */
  ...WORKER_PROGRAMS,
  /** Desktops that may come in by a session of the worker's own; those that it has stay. */
  client_keys: v.pipe(v.array(PublicKeyLine), v.maxLength(16)),
  /** Where the worker is met from elsewhere, the token for that, and certification authorities in PEM that vouch for it besides the system's; null: nowhere. Left out: as it is. */
  relay: v.optional(v.nullable(v.strictObject({ relay_host: text(1_024), token: text(512), ca: v.exactOptional(looseText(CA_MAX)) }))),
  /** What it offers at a frps; null: nothing. Left out: as it is. */
  frp: v.optional(v.nullable(FrpOffering)),
  /** Whether the time for which they are let in begins anew. */
  renew_keys: v.optional(v.boolean()),
  /** That time; null: for good. Left out: as it is. */
  key_ttl_seconds: v.optional(v.nullable(KeyTtl)),
});
export type WorkerConfiguration = v.InferOutput<typeof WorkerConfiguration>;

/** What the host has to say to that. */
export const WorkerConfigured = v.object({
  schema_version: v.literal("clio-relay.worker-configured.v1"),
  cluster: Id,
  version: text(128),
  /** Whether anything was changed. */
  changed: v.boolean(),
  /** Whether a worker that runs has to be restarted for it. */
  restart: v.optional(v.boolean(), false),
  /** The worker's identity in sessions of its own. */
  host_key: PublicKeyLine,
  /** As ssh-keygen -l shows it. */
  host_key_sha256: text(64),
  /** The key that takes its place, where one is announced. */
  next_host_key: v.optional(v.nullable(PublicKeyLine), null),
  paths: v.object({ core_dir: text(4_096), spool_dir: text(4_096), socket: text(4_096), log: text(4_096) }),
});
export type WorkerConfigured = v.InferOutput<typeof WorkerConfigured>;
