import type { ClusterClient } from "../../api/client.ts";
import { EXIT, errorRule, hintOf, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { JobWaitResult } from "../../domain/views.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import { Reconnect } from "../follow/reconnect.ts";
import { hintAtLog } from "../follow/written-elsewhere.ts";
import type { CliIo } from "../io.ts";
import { endLine } from "../print/outcome-text.ts";
import { styleFor } from "../print/style.ts";
import { printJson } from "../print/table.ts";
import { jobId, patience } from "../values.ts";
import { also, defineVerb, ignored, optionOr } from "../verb.ts";

export const verb = defineVerb({
  summary: "Wait until a job has ended",
  details:
    "Ends with 0 when the job succeeded, with 10 when it failed or was canceled, and with 6 when the time is over: then the job goes on, and " +
    "nothing was done to it.",
  positionals: { job: jobId },
  flags: {
    cluster: CLUSTER,
    "timeout-seconds": also(optionOr(patience, LIMITS.waitDefaultSeconds, "How long at most"), "timeout"),
    "poll-seconds": ignored("waiting is by notification"),
  },
  examples: [
    ["job wait job_0123456789abcdef0123456789abcdef", "at most ten minutes"],
    ["job wait job_0123456789abcdef0123456789abcdef --timeout-seconds 12h --json", "the job with what was observed, for a program"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    return interruptible(
      io,
      () => `no longer waiting; the job goes on. Wait again with: clio-relay job wait ${id} --cluster ${cluster.name}`,
      async (signal) => {
        const result = await waitForJob(cluster, id, flags["timeout-seconds"], io, signal);
        if (json) await printJson(io.stdout, result);
        else {
          await printEnd(io, result);
          await hintAtLog(io.stderr, cluster, result);
        }
        return waitExit(result);
      },
    );
  },
});

/** 0 succeeded, 10 failed or canceled, 6 not over yet. */
export const waitExit = ({ state, observation }: JobWaitResult): number =>
  observation.outcome !== "terminal" ? EXIT.notFinished : state === "succeeded" ? EXIT.ok : EXIT.remoteFailed;

/** One line on how it stands. @param meanwhile what goes on when the time is over */
export async function printEnd(io: CliIo, job: JobWaitResult, meanwhile = "the job goes on"): Promise<void> {
  await io.stdout.write(`${endLine(styleFor(io.stdout, io.env), job)}\n`);
  if (job.observation.outcome !== "terminal") await io.stderr.write(`notice: the time is over; ${meanwhile}\n`);
}

/**
 * Wait for a job, through restarts of worker and daemon. The first question must come through.
 *
 * @param seconds how long at most; Infinity for as long as it takes
 * @param admitted whether the worker has just answered for this job: then the first question is as good as any
 */
export async function waitForJob(
  cluster: ClusterClient,
  id: string,
  seconds: number,
  io: CliIo,
  signal: AbortSignal,
  admitted = false,
): Promise<JobWaitResult> {
  const reconnect = new Reconnect(io.stderr, io.clock, signal);
  if (admitted) await reconnect.alive();
  const deadline = io.clock.monotonic() + seconds * 1_000;
  let seen: JobWaitResult | null = null;
  for (;;) {
    const left = Math.max(0, (deadline - io.clock.monotonic()) / 1_000);
    try {
      // Asked once without waiting, so that what cannot be found or reached is said at once.
      const first = seen === null;
      const result = await cluster.wait(id, { timeout_seconds: first ? 0 : Math.min(left, LIMITS.waitMaxSeconds), signal });
      await reconnect.alive();
      seen = { ...result, observation: { ...result.observation, timeout_seconds: Number.isFinite(seconds) ? seconds : null } };
      if (result.observation.outcome === "terminal" || io.clock.monotonic() >= deadline) return seen;
      // A worker that is about to stop answers early.
      if (!first) await reconnect.wait(null);
    } catch (error) {
      if (seen === null && !admitted) throw error;
      if (!reconnect.waitsThrough(error)) throw goesOn(error, cluster.name, id);
      // What was seen last is the observation; the outage is on standard error.
      if (seen !== null && io.clock.monotonic() >= deadline) return seen;
      await reconnect.wait(error);
    }
  }
}

/** A wait that ends because of the way says so of the job, too. */
function goesOn(error: unknown, cluster: string, id: string): unknown {
  if (!(error instanceof RelayError) || errorRule(error.code).http === 404) return error;
  const again = `the job goes on, wait again with: clio-relay job wait ${id} --cluster ${cluster}`;
  const hint = hintOf(error);
  return new RelayError(error.code, error.message, error.data, hint === undefined ? again : `${hint}; ${again}`, { cause: error });
}
