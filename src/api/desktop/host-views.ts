import * as v from "valibot";
import { KeyTtl } from "../../domain/link-keys.ts";
import { Sha256, text } from "../../domain/primitives.ts";
import { AttendedRequest } from "./link-views.ts";

/** Executables that a command may offer, and the longest path of one. */
const MAX_ARTIFACTS = 8;

const none = v.strictObject({});

/** What can be done on the host of a cluster's worker, over the connection that is there or a new one; each with its options. */
export const HOST_TASKS = {
  probe: none,
  bootstrap: v.strictObject({
    /** Executables on this machine, absolute; the one to be preferred first. */
    artifacts: v.pipe(v.array(text(4_096)), v.maxLength(MAX_ARTIFACTS)),
    /** SHA-256 that the executable has to have; null: whatever fits. */
    expected_digest: v.nullable(Sha256),
    /** Version of the executables, where it is known before they run. */
    version: v.nullable(text(128)),
    allow_downgrade: v.boolean(),
    /** How long this desktop's key is let in from now on; null: for good. Left out: for as long as before. */
    key_ttl_seconds: v.optional(v.nullable(KeyTtl)),
    /** A JARVIS-CD for its pipelines, by paths on this machine. Left out: none is brought. */
    jarvis: v.exactOptional(
      v.strictObject({
        /** An archive, or a source tree. */
        source: text(4_096),
        /** SHA-256 that the archive has to have; null: whatever it has. */
        expected_digest: v.nullable(Sha256),
        /** A wheel of PyYAML; null: the host's Python has it. */
        wheel: v.nullable(text(4_096)),
      }),
    ),
  }),
  rollback: none,
  uninstall: v.strictObject({
    /** Remove queue and spool, too. */
    purge: v.boolean(),
  }),
  "service-install": v.strictObject({
    launcher: v.picklist(["systemd", "setsid", "cron"]),
    start: v.boolean(),
    enable: v.boolean(),
    /** Go without linger: the service ends with the user's last session. */
    allow_login_scoped: v.boolean(),
  }),
  "service-restart": none,
  "service-remove": none,
  "service-status": none,
  "worker-start": none,
  "worker-stop": v.strictObject({
    /** End it by force where it does not end by itself. */
    kill: v.optional(v.boolean(), false),
  }),
} as const;
export type HostTaskName = keyof typeof HOST_TASKS;
export type HostTaskOptions<N extends HostTaskName> = v.InferOutput<(typeof HOST_TASKS)[N]>;
/** One task with its options. */
export type HostTask = { [N in HostTaskName]: { readonly task: N; readonly options: HostTaskOptions<N> } }[HostTaskName];

/** One sentence on each. */
export const HOST_TASK_SUMMARIES: Readonly<Record<HostTaskName, string>> = {
  probe: "Look at the host of a cluster: platform, room, installation, worker; changes nothing",
  bootstrap: "Install this version on the host of a cluster, and have its worker run",
  rollback: "Go back to the version that was installed before, and restart the worker",
  uninstall: "Remove service, worker and installation from the host of a cluster",
  "service-install": "Have a service keep the worker of a cluster running",
  "service-restart": "Restart the service of a cluster's worker; jobs go on",
  "service-remove": "Stop the service of a cluster's worker and take it away; its jobs go on",
  "service-status": "How the service of a cluster's worker is; changes nothing",
  "worker-start": "Start the worker of a cluster on its host",
  "worker-stop": "Stop the worker of a cluster on its host; its jobs go on",
};

/** Body of the route of a task. */
export const hostTaskBody = <N extends HostTaskName>(task: N) => v.strictObject({ request: AttendedRequest, options: HOST_TASKS[task] });
