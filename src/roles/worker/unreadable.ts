import fs from "node:fs";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { attemptDirectory, hasTraces, jobDirectory, readStart, voidAttempt, writeCancel } from "../../execution/attempt-dir.ts";
import { homeElsewhere } from "../../execution/other-copy.ts";
import { endJob, findJob, type JobProcesses } from "../../execution/processes.ts";
import { attemptMark } from "../../execution/spool-records.ts";
import { type Identity, isAlive } from "../../lib/system/process-identity.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import type { Finding, QueueStore, RepairReport, UnreadableJob } from "../../queue/store.ts";
import { mayRunAtScheduler } from "./allocation/unwatched.ts";
import type { WorkerContext } from "./context.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { jobPlace } from "./job-place.ts";

/** How long a shim may take beyond the grace period of its job, and how often it is looked at; milliseconds. */
const MARGIN_MS = 5_000;
const LOOK_MS = 50;

/** What becomes of a job that cannot be read. */
type UnreadableEnd = "ended" | "runs" | "readable";

/**
 * End a job whose record the queue cannot read. What is out of it is known by the attempt's number: its shim and its processes are asked to end where that was
 * asked for, and the job ends once nothing of it runs.
 *
 * @param as `canceled` ends what runs; `failed` does not
 * @param cancelScheduler whether a cancel ends its job of a scheduler, too
 */
async function endUnreadable(
  context: WorkerContext,
  jobId: string,
  as: "failed" | "canceled",
  cancelScheduler: boolean,
): Promise<UnreadableEnd> {
  const found = await context.store.unreadable(jobId);
  if (found === null) return "readable";
  const { attempt, scheduler_job } = found;
  const canceling = as === "canceled";
  if (attempt !== null && scheduler_job === null && (await stillRuns(context, jobId, attempt, found, canceling))) return "runs";
  // A cancel leaves the scheduler's job alone unless it is meant, too.
  if (attempt !== null && scheduler_job !== null && (!canceling || cancelScheduler)) {
    const directory = attemptDirectory(jobPlace(context, jobId), attempt);
    if (await mayRunAtScheduler(context.schedulers, scheduler_job, directory, cancelScheduler)) return "runs";
  }
  const what = as === "canceled" ? "canceled" : "its end is not known";
  await context.store.endUnreadable(jobId, as, `${what}: its record cannot be read, and nothing of it runs`);
  return "ended";
}

/**
 * A cancel of the store that goes without the job's record where that cannot be read.
 *
 * @throws RelayError queue_corrupt then in any case, since there is no record that could be answered with; it says what was done
 */
export const cancelOf =
  (context: WorkerContext, dispatcher: Dispatcher): QueueStore["requestCancel"] =>
  async (jobId, wish) => {
    try {
      return await context.store.requestCancel(jobId, wish);
    } catch (error) {
      if (!isRelayError(error, "queue_corrupt")) throw error;
      // What this worker has launched itself goes its usual way, whatever has become of its record.
      dispatcher.run(jobId)?.cancel();
      const end = await endUnreadable(context, jobId, "canceled", wish.cancel_scheduler);
      if (end === "readable") throw error;
      const done =
        end === "ended"
          ? "the job is canceled, and nothing of it runs"
          : "it was asked to end, and something of it still runs; cancel it again";
      throw new RelayError("queue_corrupt", `${error.message}; ${done}`, { ...error.data, canceled: end === "ended" }, error.hint, {
        cause: error,
      });
    }
  };

/** A repair of the queue, which ends besides what was set aside or cannot be read, and of which nothing runs any more. */
export async function repairQueue(context: WorkerContext, dispatcher: Dispatcher): Promise<RepairReport> {
  const given = await dispatcher.giveUpAside();
  const { repaired, ...first } = await context.store.repair();
  const ended: Finding[] = [];
  for (const finding of first.remaining) {
    if (finding.check !== "record" || dispatcher.run(finding.subject) !== undefined) continue;
    if ((await endUnreadable(context, finding.subject, "failed", false)) === "ended") ended.push({ ...finding, repairable: true });
  }
  if (ended.length === 0) return { ...first, repaired: [...given, ...repaired] };
  const again = await context.store.repair();
  return { ...again, repaired: [...given, ...repaired, ...ended, ...again.repaired], truncated: first.truncated || again.truncated };
}

async function stillRuns(
  context: WorkerContext,
  jobId: string,
  attempt: number,
  { shim: known, process: first }: UnreadableJob,
  canceling: boolean,
): Promise<boolean> {
  const directory = attemptDirectory(jobDirectory(context.spoolDir, jobId), attempt);
  const claimed = claimOf(directory);
  const shim = known ?? claimed.shim;
  if (homeElsewhere({ job_id: jobId, attempt, spool: context.spoolDir, shim }) !== null) return false;
  const job: JobProcesses = { mark: attemptMark(jobId, attempt), process: first, cgroup: claimed.cgroup };
  const graceMs = context.limits.cancelGraceSeconds * 1_000;
  if (canceling && shim !== null && isAlive(shim)) await askShim(context, directory, shim, graceMs + MARGIN_MS);
  if (shim !== null && isAlive(shim)) return true;
  if (canceling) await endJob(job, graceMs, context.clock);
  const { owned, doubtful } = findJob(job);
  if (owned.length + doubtful.length > 0) return true;
  // One that nobody has claimed must not be claimed any more.
  return shim === null && fs.existsSync(directory) && !hasTraces(directory) && !voidAttempt(directory, "its record cannot be read");
}

/** Who has claimed an attempt, as far as that can be read. */
function claimOf(directory: string): { readonly shim: Identity | null; readonly cgroup: string | null } {
  try {
    const start = readStart(directory);
    if (start !== null && start !== "torn" && start.claimed_by === "shim") return start;
  } catch {
    // Nobody can be asked.
  }
  return { shim: null, cgroup: null };
}

async function askShim({ clock }: WorkerContext, directory: string, shim: Identity, withinMs: number): Promise<void> {
  try {
    writeCancel(directory, timestamp(clock));
  } catch {
    // TERM alone ends the job, too.
  }
  process.kill(shim.pid, "SIGTERM");
  for (const until = clock.monotonic() + withinMs; isAlive(shim) && clock.monotonic() < until; ) await Bun.sleep(LOOK_MS);
}
