import type { ClusterClient } from "../../api/client.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import type { Job } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import { printJson } from "../print/table.ts";
import { activeJobId, patience } from "../values.ts";
import { also, defineVerb, optionOr, toggle } from "../verb.ts";

export const verb = defineVerb({
  summary: "End a job",
  details:
    "A queued job is canceled at once. A running one is asked to end: TERM, and KILL after a grace period; it is canceled when everything that it " +
    "started is gone. What runs in an allocation of a scheduler is another matter: the job here is canceled at once and the scheduler's goes on, unless --cancel-scheduler-job is given. A job that is " +
    "over stays as it is; --cancel-scheduler-job then ends what it has left at the scheduler.",
  positionals: { job: activeJobId },
  flags: {
    cluster: CLUSTER,
    "cancel-scheduler-job": toggle("End the scheduler's job too"),
    "keep-scheduler-job": toggle("Keep the scheduler's job (as without the option)"),
    wait: toggle("Come back when it is over: with 0, however it ended, or with 6 when the time is over first, and the request stands"),
    "timeout-seconds": also(optionOr(patience, LIMITS.waitDefaultSeconds, "With --wait: how long at most"), "timeout"),
  },
  examples: [
    ["job cancel job_0123456789abcdef0123456789abcdef", "ask for its end"],
    ["job cancel job_0123456789abcdef0123456789abcdef --wait", "come back when it is over"],
  ],
  async run({ flags, args, io, json, relay }) {
    if (flags["cancel-scheduler-job"] && flags["keep-scheduler-job"]) {
      throw new RelayError("usage", "--cancel-scheduler-job and --keep-scheduler-job exclude each other");
    }
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const before = await cluster.job(id);
    const canceled = await cluster.cancel(id, { cancel_scheduler_job: flags["cancel-scheduler-job"] });
    const { job: asked, left } =
      before.lane === "scheduler" ? await there(cluster, before, flags["cancel-scheduler-job"]) : { job: canceled, left: null };
    if (left !== null && !json) await io.stderr.write(`notice: ${left}\n`);
    else if (!json && isTerminal(before.state)) await io.stderr.write(`notice: it was over already; nothing was canceled\n`);
    if (!flags.wait) {
      if (json) await printJson(io.stdout, asked);
      else await io.stdout.write(`${asked.job_id} ${isTerminal(asked.state) ? asked.state : `${asked.state}, cancel requested`}\n`);
      return EXIT.ok;
    }
    const { printEnd, waitForJob } = await import("./wait.ts");
    return interruptible(
      io,
      () => `no longer waiting; the request stands. Wait for its end with: clio-relay job wait ${id} --cluster ${cluster.name}`,
      async (signal) => {
        const result = await waitForJob(cluster, id, flags["timeout-seconds"], io, signal);
        if (json) await printJson(io.stdout, result);
        else
          await printEnd(
            io,
            result,
            `cancel is requested, and the request stands. Wait for its end with: clio-relay job wait ${id} --cluster ${cluster.name}`,
          );
        return result.observation.outcome === "terminal" ? EXIT.ok : EXIT.notFinished;
      },
    );
  },
});

/**
 * The job after a cancel, and what becomes of the scheduler's where that is something else; null where it is not. One that an earlier cancel had left there is asked
 * to end, where that is what is wanted now.
 */
async function there(cluster: ClusterClient, before: Job, end: boolean): Promise<{ readonly job: Job; readonly left: string | null }> {
  const { job, scheduler } = await cluster.status(before.job_id);
  const wasOver = isTerminal(before.state);
  const one = scheduler?.findLast(({ native_id, ended_at }) => native_id !== null && ended_at === null);
  if (one?.native_id == null || (wasOver ? !one.retained : end)) return { job, left: null };
  const name = `${one.provider} ${one.native_id}`;
  if (!end) return { job, left: `${name} goes on; clio-relay scheduler cancel ${one.native_id} --cluster ${cluster.name} ends it` };
  await cluster.scheduler.cancel(one.native_id, one.provider);
  return { job, left: `${name}, which was left to go on, is asked to end` };
}
