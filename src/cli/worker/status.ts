import type { ClusterClient } from "../../api/client.ts";
import { EXIT } from "../../domain/errors.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import { CLUSTER } from "../cluster-option.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { agoText } from "../print/quantities.ts";
import { slotsText } from "../print/slots-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb, ignored } from "../verb.ts";
import { clusterElsewhere, localCluster, localWorker, runningWorker } from "./local-worker.ts";

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
    const { cluster, answer } = await asked(io, relay, flags.cluster);
    if (json) await printJson(io.stdout, answer);
    else {
      const { mode } = await relay.clusterEntry(cluster.name);
      const socket = mode === "local" ? relay.paths.workerSocket(cluster.name) : null;
      for (const worker of answer.workers) await printFields(io.stdout, fieldsOf(worker, socket, io.clock.now()));
    }
    return EXIT.ok;
  },
});

/** One of this machine is asked itself: no daemon is needed, or started. Where it does not run, or elsewhere, the daemon says what is known. */
async function asked(
  io: CliIo,
  relay: Installation,
  named: string | undefined,
): Promise<{ cluster: ClusterClient; answer: Awaited<ReturnType<ClusterClient["workers"]>> }> {
  if ((await clusterElsewhere(io, relay, named)) === null) {
    const { name } = await localCluster(io, relay, named);
    const cluster = localWorker(io, relay, name);
    const running = await runningWorker(cluster);
    if (running !== null) return { cluster, answer: { workers: [running], worker_count: 1 } };
  }
  const cluster = await relay.cluster(named);
  return { cluster, answer: await cluster.workers() };
}

const counts = (by: Readonly<Record<string, number>>): string =>
  Object.entries(by)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ") || "none";

const metText = (met: WorkerStatus["met_at"]): string | null =>
  met == null
    ? null
    : `${met.place}${met.registered ? "" : `, and is not there${met.reason === null ? "" : ` (${met.reason})`}${met.detail == null ? "" : `: ${met.detail}`}`}`;

const frpText = (frp: WorkerStatus["frp"]): string | null =>
  frp == null
    ? null
    : `${frp.server}${frp.reached ? "" : `, and is not reached there${frp.reason === null ? " yet" : ` (${frp.reason})`}`}`;

/** Null where nothing is there; they count among what is running. */
const schedulerText = ({ active_leases_by_lane: { scheduler = 0 }, capacity }: WorkerStatus): string | null =>
  scheduler === 0 ? null : `${scheduler} of at most ${capacity.scheduler_jobs}`;

const fieldsOf = (worker: WorkerStatus, socket: string | null, now: number) =>
  [
    ["cluster", worker.cluster],
    ["process", `${worker.process.pid} on ${worker.process.hostname}`],
    ["version", worker.version],
    ["since", `${worker.registered_at} (${agoText(worker.registered_at, now)})`],
    ["listens on", socket],
    ["met at", metText(worker.met_at)],
    ["frps", frpText(worker.frp)],
    ["slots", slotsText(worker.capacity)],
    ["kind limits", Object.keys(worker.capacity.kind_concurrency).length === 0 ? null : counts(worker.capacity.kind_concurrency)],
    ["running", counts(worker.active_leases_by_kind)],
    ["at the scheduler", schedulerText(worker)],
    ["queued", counts(worker.queued_by_kind)],
    ["quarantined", worker.quarantined],
    ["last error", worker.lane_last_error],
    ["state in", worker.core_dir],
    ["output in", worker.spool_dir],
  ] as const;
