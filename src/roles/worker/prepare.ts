import type { Job } from "../../domain/job.ts";
import type { LogSegment, LogStream } from "../../domain/log.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { eventsDirectory, prepareAttempt } from "../../execution/attempt-dir.ts";
import { jobEnvironment } from "../../execution/environment.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import type { EngineAttempt, EnginePlan } from "./engines/engine.ts";
import { inputVariables } from "./inputs.ts";

/** Everything that an attempt's shim is to be told. */
export async function preparationOf(
  context: WorkerContext,
  job: Job,
  { job_id }: Fence,
  engine: Pick<EngineAttempt, "plan">,
): Promise<Preparation> {
  const inputs = await inputVariables(context, job);
  const segments = await context.store.segments(job_id);
  return { plan: await engine.plan(), segments, inputs };
}

/** What the preparation of an attempt needs besides its job. */
export interface Preparation {
  readonly plan: EnginePlan;
  readonly segments: readonly LogSegment[];
  /** Variables with the paths of its inputs. */
  readonly inputs: Readonly<Record<string, string>>;
}

/** Write down everything that the shim needs to run the attempt. */
export function prepare(context: WorkerContext, job: Job, fence: Fence, directory: string, { plan, segments, inputs }: Preparation): void {
  const { script, files } = plan;
  prepareAttempt(directory, {
    job_id: fence.job_id,
    attempt: fence.attempt,
    cluster: context.cluster,
    argv: plan.argv,
    workdir: plan.workdir ?? context.homeDir,
    env: jobEnvironment({
      worker: context.environment,
      trace: job.trace,
      spec: plan.env,
      jobId: fence.job_id,
      attempt: fence.attempt,
      cluster: context.cluster,
      eventsDir: eventsDirectory(directory),
      inputs,
      executableDir: context.executableDir,
    }),
    login: plan.login,
    env_setup: context.envSetup,
    ...(context.envSetupStrict ? { env_setup_strict: true } : {}),
    timeout_seconds: plan.timeout_seconds,
    quota: {
      stream_bytes: context.limits.logStreamBytes,
      job_bytes: context.limits.logJobBytes,
      used: keptBefore(segments, fence.attempt),
    },
    cancel_grace_seconds: context.limits.cancelGraceSeconds,
    ...(plan.first_alone_seconds === undefined ? {} : { first_alone_seconds: plan.first_alone_seconds }),
    ...(script === undefined ? {} : { script }),
    ...(files === undefined ? {} : { files }),
  });
}

/** Bytes that earlier attempts have kept, which count against the job's quota. */
function keptBefore(segments: readonly LogSegment[], attempt: number): Record<LogStream, number> {
  const kept = (stream: LogStream) =>
    segments.filter((s) => s.stream === stream && s.attempt < attempt).reduce((sum, s) => sum + s.length, 0);
  return Object.fromEntries(LOG_STREAMS.map((stream) => [stream, kept(stream)])) as Record<LogStream, number>;
}
