import * as v from "valibot";
import { Count, Id, looseText, Sha256, text } from "../../domain/primitives.ts";
import { WorkerConfigured } from "../../domain/worker-configuration.ts";
import { JarvisInstalled } from "../jarvis/deliver.ts";
import { HostProbe } from "./probe.ts";

/** The steps of a bootstrap, in their order; `jarvis` where one is asked for. */
export const STEPS = ["probe", "choose", "send", "install", "jarvis", "configure", "worker"] as const;
export type Step = (typeof STEPS)[number];

const word = looseText(1_024);

/** What a bootstrap did, found done, and took. */
export const BootstrapReport = v.strictObject({
  schema_version: v.literal("clio-relay.bootstrap-report.v1"),
  cluster: Id,
  /** As it was before anything was done. */
  host: HostProbe,
  artifact: v.strictObject({ digest: Sha256, size: Count, version: text(128), file: word }),
  steps: v.array(
    v.strictObject({
      step: v.picklist(STEPS),
      /** `unchanged`: it was as it had to be. */
      outcome: v.picklist(["done", "unchanged"]),
      /** In milliseconds. */
      took_ms: Count,
      detail: word,
    }),
  ),
  /** Bytes of the executable that went over the connection. */
  sent_bytes: Count,
  installation: v.strictObject({
    root: word,
    executable: word,
    current: Sha256,
    /** What was current before, where that was another one. */
    before: v.nullable(Sha256),
    /** Older versions that were removed. */
    removed: v.array(Sha256),
    /** `~/.local/bin/clio-relay`. */
    launcher: v.picklist(["made", "kept", "other", "failed"]),
  }),
  /** The JARVIS-CD that was asked for; absent where none was. */
  jarvis: v.exactOptional(JarvisInstalled),
  /** Identity of the worker in sessions of its own, and where its things are. */
  configured: WorkerConfigured,
  worker: v.strictObject({
    state: v.picklist(["kept", "started", "replaced"]),
    pid: v.nullable(Count),
    hostname: word,
    /** Who starts it again when it ends; null: nobody. */
    supervised_by: v.nullable(v.picklist(["systemd", "setsid", "cron"])),
  }),
  /** What a person has to know or do, one sentence each. */
  notices: v.array(word),
});
export type BootstrapReport = v.InferOutput<typeof BootstrapReport>;

/** What happens meanwhile. `sent` comes with every piece: bytes that are there or on their way, of all. */
export type BootstrapEvent =
  | { readonly type: "step"; readonly step: Step; readonly state: "begin" | "done" | "unchanged"; readonly detail: string }
  | { readonly type: "sent"; readonly bytes: number; readonly total: number };
