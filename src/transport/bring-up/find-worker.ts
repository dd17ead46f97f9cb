import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { WorkerRecord } from "../../domain/worker-record.ts";
import layoutText from "../script/layout.sh" with { type: "text" };
import type { Remote } from "../script/remote.ts";
import siteText from "../script/site.sh" with { type: "text" };
import findText from "./find-worker.sh" with { type: "text" };

/** What a login node says of a cluster's worker. */
export interface Found {
  /** The host that answered, by its own name. */
  readonly hostname: string;
  readonly bootId: string;
  /** Where the installation lies there. */
  readonly root: string;
  readonly installed: boolean;
  /** What tells the site from others; null where it was not asked for. */
  readonly site: Site | null;
  /** The last worker that served; null where there is no record of one. */
  readonly worker: WorkerRecord | null;
  /** Whether it runs on this host; false also where it runs on another one. */
  readonly runsHere: boolean;
}

/** Null: the host has nothing that says so. */
export interface Site {
  readonly markerSha256: string | null;
  readonly schedulerCluster: string | null;
}

export interface Place {
  readonly cluster: string;
  /** Where the installation lies, as the cluster's entry has it; null for the usual place. */
  readonly coreDir: string | null;
  /** Whether it is to be asked which site it is: that may ask the scheduler. */
  readonly site: boolean;
}

const WITHIN_MS = 30_000;

/**
 * Ask a login node where the worker of a cluster is. Nothing is changed there.
 *
 * @throws as Remote.run; answer_malformed where the record is none
 */
export async function findWorker(remote: Remote, { cluster, coreDir, site }: Place, signal: AbortSignal): Promise<Found> {
  const answer = await remote.run(
    { name: "find the worker", text: `${layoutText}${siteText}${findText}` },
    { values: { a_cluster: cluster, a_home: coreDir ?? "", a_site: site ? "yes" : "no" }, signal, withinMs: WITHIN_MS },
  );
  const said = answer.last("worker");
  const worker = said === null ? null : recordOf(said);
  const hostname = answer.one("hostname");
  const bootId = answer.last("boot_id") ?? "";
  return {
    hostname,
    bootId,
    root: answer.one("root"),
    installed: answer.last("installed") === "yes",
    site: site ? { markerSha256: answer.last("site_marker") || null, schedulerCluster: answer.last("scheduler_cluster") || null } : null,
    worker,
    runsHere: worker !== null && isOf(worker, { hostname, bootId }) && answer.count("start_time") === worker.process.start_time,
  };
}

/** Whether a worker's record is of a host: the same kernel, by whatever name. */
export const isOf = ({ process }: WorkerRecord, { hostname, bootId }: Pick<Found, "hostname" | "bootId">): boolean =>
  bootId === "" ? process.hostname === hostname : process.boot_id === bootId;

function recordOf(text: string): WorkerRecord {
  try {
    return v.parse(WorkerRecord, JSON.parse(text));
  } catch (error) {
    throw new RelayError("answer_malformed", "the record that the worker left beside its queue is not understood here", {}, undefined, {
      cause: error,
    });
  }
}
