import { EXIT } from "../../domain/errors.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import { CLUSTER } from "../cluster-option.ts";
import { agoText } from "../print/quantities.ts";
import { slotsText } from "../print/slots-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb, ignored } from "../verb.ts";

const ONE = "a cluster has one worker";

export const verb = defineVerb({
  summary: "Show the worker of a cluster",
  positionals: {},
  flags: { cluster: CLUSTER, cursor: ignored(ONE), limit: ignored(ONE) },
  examples: [
    ["worker status --cluster local", "process, capacity and what it does"],
    ["worker status --json", "the same, for a program"],
  ],
  async run({ flags, io, json, relay }) {
    const cluster = await relay.cluster(flags.cluster);
    const answer = await cluster.workers();
    if (json) await printJson(io.stdout, answer);
    else {
      const { mode } = await relay.clusterEntry(cluster.name);
      const socket = mode === "local" ? relay.paths.workerSocket(cluster.name) : null;
      for (const worker of answer.workers) await printFields(io.stdout, fieldsOf(worker, socket, io.clock.now()));
    }
    return EXIT.ok;
  },
});

const counts = (by: Readonly<Record<string, number>>): string =>
  Object.entries(by)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ") || "none";

const metText = (met: WorkerStatus["met_at"]): string | null =>
  met == null ? null : `${met.place}${met.registered ? "" : `, and is not there${met.reason === null ? "" : ` (${met.reason})`}`}`;

const fieldsOf = (worker: WorkerStatus, socket: string | null, now: number) =>
  [
    ["cluster", worker.cluster],
    ["process", `${worker.process.pid} on ${worker.process.hostname}`],
    ["version", worker.version],
    ["since", `${worker.registered_at} (${agoText(worker.registered_at, now)})`],
    ["listens on", socket],
    ["met at", metText(worker.met_at)],
    ["slots", slotsText(worker.capacity)],
    ["kind limits", Object.keys(worker.capacity.kind_concurrency).length === 0 ? null : counts(worker.capacity.kind_concurrency)],
    ["running", counts(worker.active_leases_by_kind)],
    ["queued", counts(worker.queued_by_kind)],
    ["quarantined", worker.quarantined],
    ["last error", worker.lane_last_error],
    ["state in", worker.core_dir],
    ["output in", worker.spool_dir],
  ] as const;
