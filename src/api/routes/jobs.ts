import * as v from "valibot";
import { Attempt } from "../../domain/attempt.ts";
import { RelayError } from "../../domain/errors.ts";
import { JOB_KINDS, JOB_STATES, Job } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { flag, seconds, several, whole } from "../../domain/query.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { type JobScheduler, JobStatus, JobWaitResult } from "../../domain/views.ts";
import { executionIdOf } from "../../execution/jarvis/execution-id.ts";
import { JobList } from "../answers.ts";
import { ownName } from "../called.ts";
import { jobInputs } from "../job-inputs.ts";
import { json, type Operation, operation } from "../operation.ts";
import { waker } from "../sse.ts";
import type { WorkerServices } from "../worker-services.ts";
import { PollSeconds } from "./streams.ts";

/** Query filter `state`, repeatable. */
export const StateFilter = v.optional(several(v.picklist(JOB_STATES), 16));

const RecentQuery = v.strictObject({
  state: StateFilter,
  kind: v.optional(v.picklist(JOB_KINDS)),
  /** False leaves out the jobs that stand for staged files. */
  inputs: v.optional(flag, "true"),
  /** What the job's id begins with. */
  id_prefix: v.optional(v.pipe(v.string(), v.regex(/^job_[0-9a-f]{8,32}$/, "must be job_ and at least 8 hexadecimal digits"))),
  before: v.optional(whole(1)),
  limit: v.optional(whole(1, LIMITS.pageMax), "20"),
});

const WaitQuery = v.strictObject({
  timeout_seconds: v.optional(seconds(LIMITS.waitMaxSeconds), String(LIMITS.waitDefaultSeconds)),
  /** Accepted for callers that polled once; waiting is by notification. */
  poll_seconds: PollSeconds,
});

const CancelBody = v.strictObject({
  cluster: v.optional(v.string()),
  /** Whether its job of a scheduler is to end, too; otherwise that goes on. */
  cancel_scheduler_job: v.optional(v.boolean(), false),
});

/** Jobs: read, wait, cancel. */
export const jobRoutes = (services: WorkerServices): Operation[] => [...readingRoutes(services), ...actingRoutes(services)];

const readingRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;
  return [
    operation({
      method: "get",
      path: "/jobs",
      id: "listRecentJobs",
      summary: "Recent jobs, newest first",
      query: RecentQuery,
      answer: {
        kind: "json",
        schema: JobList,
      },
      handler: async ({ query }) =>
        json(
          await store.recentJobs(
            {
              ...(query.state === undefined ? {} : { states: query.state }),
              ...(query.kind === undefined ? {} : { kind: query.kind }),
              withoutInputs: !query.inputs,
              ...(query.id_prefix === undefined ? {} : { idPrefix: query.id_prefix }),
            },
            query.before ?? null,
            query.limit,
          ),
        ),
    }),
    operation({
      method: "get",
      path: "/jobs/:id",
      id: "getJob",
      summary: "The job record",
      answer: { kind: "json", schema: Job },
      errors: ["job_not_found"],
      handler: async ({ param }) => json(await store.job(param("id"))),
    }),
    operation({
      method: "get",
      path: "/jobs/:id/status",
      id: "getJobStatus",
      summary: "The job with its attempt, queue position, what it has at a scheduler, progress and log sizes",
      answer: { kind: "json", schema: JobStatus },
      errors: ["job_not_found"],
      handler: async ({ param }) => json(await jobStatus(services, param("id"))),
    }),
    operation({
      method: "get",
      path: "/jobs/:id/attempts",
      id: "listAttempts",
      summary: "Every attempt of the job",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("attempts", Attempt) },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        const { items, ...page } = await store.attempts(param("id"), query);
        return json({ attempts: items, ...page });
      },
    }),
  ];
};

const actingRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "post",
    path: "/jobs/:id/wait",
    id: "waitForJob",
    summary: "Wait until the job has ended or the time is over; running out of time changes nothing",
    query: WaitQuery,
    queryRefusal: "wait_parameters_invalid",
    answer: { kind: "json", schema: JobWaitResult },
    errors: ["job_not_found"],
    handler: async ({ c, param, query }) => {
      const { timeout_seconds } = query;
      const job = await untilTerminal(services, param("id"), timeout_seconds * 1_000, c.req.raw.signal);
      const outcome = isTerminal(job.state) ? "terminal" : "observation_unknown";
      return json({ ...job, observation: { outcome, timeout_seconds, scheduler_action: "none", relay_action: "none" } });
    },
  }),
  operation({
    method: "post",
    path: "/jobs/:id/cancel",
    id: "cancelJob",
    summary: "Ask for the job's end; the answer is the job with the request on record",
    body: CancelBody,
    bodyOptional: true,
    answer: { kind: "json", schema: Job },
    errors: ["job_not_found", "job_cluster_mismatch"],
    handler: async ({ c, param, body }) => {
      if (body.cluster !== undefined && ownName(c, services.cluster, body.cluster) !== services.cluster) {
        throw new RelayError("job_cluster_mismatch", `this worker serves ${services.cluster}`);
      }
      return json(await services.store.requestCancel(param("id"), { cancel_scheduler: body.cancel_scheduler_job }));
    },
  }),
];

async function untilTerminal(services: WorkerServices, jobId: string, timeoutMs: number, client: AbortSignal): Promise<Job> {
  const { store, clock, draining } = services;
  const deadline = clock.monotonic() + timeoutMs;
  const signal = AbortSignal.any([client, draining]);
  const change = waker((listener) => store.subscribe(`job:${jobId}`, listener), signal);
  try {
    for (;;) {
      const job = await store.job(jobId);
      const left = deadline - clock.monotonic();
      if (isTerminal(job.state) || left <= 0 || signal.aborted) return job;
      await change.wait(left);
    }
  } finally {
    change.close();
  }
}

/** A job has as many attempts at most as a page has entries. */
async function jobScheduler({ store }: WorkerServices, jobId: string): Promise<JobScheduler[]> {
  const { items } = await store.schedulerJobs(jobId, { cursor: 1, limit: LIMITS.pageMax });
  return Promise.all(items.map(async (one) => ({ ...one, task_name: (await store.task(one.task_id)).name })));
}

/** Assemble the status document of a job. */
export async function jobStatus(services: WorkerServices, jobId: string): Promise<JobStatus> {
  const { store, logs } = services;
  const job = await store.job(jobId);
  const [attempt, ahead, scheduler, jarvis, transform, progress, states] = await Promise.all([
    job.attempts === 0 ? null : store.attempt(jobId),
    store.jobsAhead(jobId),
    jobScheduler(services, jobId),
    job.kind === "jarvis" ? services.jarvis(jobId) : null,
    store.transform(jobId),
    store.latestProgress(jobId),
    Promise.all(LOG_STREAMS.map(async (stream) => ({ stream, ...(await logs.state(jobId, stream)) }))),
  ]);
  return {
    job,
    attempt,
    obstacle: services.obstacle(job),
    relay_queue: { state: job.state, jobs_ahead: ahead, position: ahead === null ? null : ahead + 1 },
    scheduler,
    jarvis: job.kind === "jarvis" ? { execution_id: executionIdOf(job), said: jarvis } : null,
    transform,
    inputs: await jobInputs(store, job),
    progress: [...progress.items],
    progress_truncated: progress.truncated,
    logs: states.map(({ stream, size_bytes, capture }) => ({ stream, size_bytes, capture })),
    terminal: isTerminal(job.state),
  };
}
