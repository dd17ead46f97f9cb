import { bootId, type Identity, isOver, type ProcessStat } from "../lib/system/process-identity.ts";
import { type Clock, systemClock } from "../lib/waiting/clock.ts";
import { cgroupProcesses, killCgroup, removeCgroup } from "./cgroup.ts";
import { endProcesses } from "./end-processes.ts";
import { allProcesses, descendantsIn, hasInitialVariable } from "./process-table.ts";
import { ATTEMPT_MARK } from "./spool-records.ts";

/** How a job's processes are recognized. */
export interface JobProcesses {
  /** Value of CLIO_RELAY_ATTEMPT; attemptMark() of spool-records.ts. */
  readonly mark: string;
  /** The job's first process; null when it is not known. */
  readonly process: Identity | null;
  /** The cgroup of start.json; null where there is none. */
  readonly cgroup: string | null;
  /** What ran below the job's shim when it was last seen. */
  readonly descendants?: readonly ProcessStat[];
}

export interface FoundProcesses {
  /** Proven to belong to the job: by its cgroup, its environment, its session, as seen below its shim, or as the child of one that is. */
  readonly owned: readonly ProcessStat[];
  /** In a session of the number that the job's had, with no proof that it is the same session. */
  readonly doubtful: readonly ProcessStat[];
}

/** What of a job runs now on this host. */
export function findJob(job: JobProcesses): FoundProcesses {
  const table = allProcesses().filter((stat) => !isOver(stat));
  const byPid = new Map(table.map((stat) => [stat.pid, stat]));
  const owned = new Set<number>();
  if (job.cgroup !== null) for (const pid of cgroupProcesses(job.cgroup)) owned.add(pid);
  for (const { pid } of table) if (hasInitialVariable(pid, ATTEMPT_MARK, job.mark) === true) owned.add(pid);
  for (const { pid, start_time } of job.descendants ?? []) if (byPid.get(pid)?.start_time === start_time) owned.add(pid);

  let session: ProcessStat[] = [];
  const first = job.process;
  if (first !== null && first.boot_id === bootId()) {
    session = table.filter((stat) => stat.session === first.pid);
    // The number of a session cannot be used again while one member lives: one that is proven proves all.
    const leader = byPid.get(first.pid);
    const proven = leader === undefined ? session.some(({ pid }) => owned.has(pid)) : leader.start_time === first.start_time;
    if (proven) {
      for (const { pid } of session) owned.add(pid);
      session = [];
    } else if (leader !== undefined) {
      // The number belongs to somebody else by now.
      session = [];
    }
  }
  for (const { pid } of descendantsIn(table, owned)) owned.add(pid);
  for (const pid of ownAncestry(byPid)) owned.delete(pid);
  return {
    owned: table.filter(({ pid }) => owned.has(pid)),
    doubtful: session.filter(({ pid }) => !owned.has(pid)),
  };
}

/** This process and everything above it: never to be ended, whatever they carry in their environment. */
function ownAncestry(byPid: ReadonlyMap<number, ProcessStat>): number[] {
  const ancestry: number[] = [];
  for (let pid = process.pid; pid > 0 && !ancestry.includes(pid); pid = byPid.get(pid)?.ppid ?? 0) ancestry.push(pid);
  return ancestry;
}

const EXEC_MS = 20;

/**
 * End every process of a job whose shim is gone: TERM, after the grace period KILL, for at most 30 s more. Can be done again from
 * the start when the signal has been aborted.
 *
 * @throws the signal's reason when that is aborted; the system's error when it could not be seen what runs
 * @returns the process ids that could not be ended, or not be proven to be the job's
 */
export async function endJob(job: JobProcesses, graceMs: number, clock: Clock = systemClock, signal?: AbortSignal): Promise<number[]> {
  const { cgroup } = job;
  let ended = { residual: [] as readonly number[] };
  do {
    ended = await endProcesses({
      find: () => findJob(job).owned,
      graceMs,
      clock,
      signal,
      ...(cgroup === null ? {} : { onForced: () => void killCgroup(cgroup) }),
    });
    // A process that is just becoming another (execve(2)) shows no environment for a moment: none left has to be seen twice.
    await Bun.sleep(EXEC_MS);
  } while (ended.residual.length === 0 && findJob(job).owned.length > 0);
  if (cgroup !== null) removeCgroup(cgroup);
  const doubtful = findJob(job).doubtful.map(({ pid }) => pid);
  return [...new Set([...ended.residual, ...doubtful])];
}
