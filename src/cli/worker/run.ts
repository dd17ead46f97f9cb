import path from "node:path";
import { clusterEntry } from "../../config/clusters.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { readSettingsFile } from "../../config/settings-file.ts";
import { VERSION } from "../../config/version.ts";
import { workerPrograms } from "../../config/worker-settings.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { chooseLauncher } from "../../roles/worker/launch.ts";
import { runWorker } from "../../roles/worker/run.ts";
import { CLUSTER } from "../cluster-option.ts";
import { schedulerChoice } from "../scheduler/choice.ts";
import { oneOf } from "../values.ts";
import { defineVerb, option, optionOr, refused, toggle } from "../verb.ts";
import { CAPACITY, capacityOf, workerCapacity } from "./capacity-options.ts";
import { frpOffer } from "./frp-offer.ts";
import { localCluster } from "./local-worker.ts";
import { RELAY, relayMeeting } from "./relay-options.ts";

export const verb = defineVerb({
  summary: "Run the worker of a cluster on this machine",
  details:
    "Stays in the foreground until TERM or Ctrl-C; then it takes no new jobs and ends, while running jobs go on and are taken over by the next worker. " +
    "Options win over what the cluster's entry says.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    ...CAPACITY,
    ...RELAY,
    "take-over": toggle("Take the queue over from a worker of another host"),
    "confirm-host-dead": toggle("With --take-over: that worker does not run any more, I made sure"),
    role: optionOr(oneOf("worker", "desktop"), "worker" as const, "What to run"),
    once: refused("a worker serves until it is stopped", false),
    "scheduler-provider": option(
      schedulerChoice,
      "Scheduler that jobs may ask for (slurm, gridengine, auto, external), instead of the cluster's",
    ),
  },
  examples: [
    ["worker run --cluster local", "until it is stopped"],
    [
      "worker run --cluster local --relay-host wss://relay.example.edu --relay-token-file ~/.relay-token",
      "met by desktops at a relay-host",
    ],
    [
      "worker run --cluster local --concurrency 8 --kind-concurrency command=6",
      "seven jobs at a time (one slot is for control queries), six of them commands",
    ],
  ],
  async run({ flags, io, json, relay }) {
    if (flags.role === "desktop") {
      const { runInForeground } = await import("../desktop/foreground.ts");
      return runInForeground(io, relay, false);
    }
    if (flags["take-over"] !== flags["confirm-host-dead"]) {
      throw new RelayError("usage", "--take-over and --confirm-host-dead come together");
    }
    const { paths, settings } = relay;
    const { name, registry } = await localCluster(io, relay, flags.cluster);
    const entry = clusterEntry(registry, name);
    const capacity = workerCapacity(capacityOf(entry.worker_capacity, flags), settings);
    prepareRunDirectory(paths, io.env);
    const stop = new AbortController();
    const off = [io.onSignal("SIGTERM", () => stop.abort()), io.onSignal("SIGINT", () => stop.abort())];
    try {
      await runWorker(
        {
          cluster: entry.name,
          version: VERSION,
          capacity,
          limits: {
            logStreamBytes: settings.log_stream_max_bytes,
            logJobBytes: settings.log_job_max_bytes,
            artifactStoreBytes: settings.artifact_store_max_bytes,
            inputInlineMaxBytes: Math.min(settings.input_file_max_bytes, LIMITS.inputInlineMaxBytes),
            minFreeBytes: settings.min_free_bytes,
            activeJobsMax: settings.active_jobs_max,
            cancelGraceSeconds: settings.cancel_grace_seconds,
          },
          coreDir: paths.coreDir(entry.name),
          spoolDir: paths.spoolDir(entry.name),
          sharedSpoolDir: settings.shared_spool_dir === null ? null : path.join(settings.shared_spool_dir, entry.name),
          scheduling: { choice: flags["scheduler-provider"] ?? entry.scheduler_provider ?? "external" },
          command: io.self,
          socketPath: paths.workerSocket(entry.name),
          linkSocketPath: paths.workerLinkSocket(entry.name),
          ...relayMeeting(io, relay, entry, flags),
          ...frpOffer(io, relay, entry.name),
          stderrFile: paths.workerLog(entry.name),
          environment: io.env.variables,
          homeDir: io.env.home,
          executableDir: io.self.length === 1 ? path.dirname(io.self[0]!) : null,
          envSetup: entry.env_setup,
          envSetupStrict: entry.env_setup_strict ?? false,
          ...workerPrograms(io.env, readSettingsFile(paths), entry),
          takeOver: flags["take-over"],
          confirmHostDead: flags["confirm-host-dead"],
          launcher: (log) =>
            chooseLauncher({
              command: io.self,
              environment: io.env.variables,
              spares: settings.spare_shims,
              spool: paths.spoolDir(entry.name),
              log,
            }),
          ...(json ? { onReady: (endpoint) => void io.stdout.write(`${JSON.stringify(endpoint)}\n`).catch(() => undefined) } : {}),
        },
        stop.signal,
      );
    } finally {
      for (const remove of off) remove();
    }
    return EXIT.ok;
  },
});
