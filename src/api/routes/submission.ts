import { type ErrorCode, RelayError } from "../../domain/errors.ts";
import { IdempotencyKey, type Job, JobReceipt, JobSubmission } from "../../domain/job.ts";
import type { SchedulerName } from "../../domain/scheduler.ts";
import { type TraceContext, traceContext } from "../../domain/trace.ts";
import { ownName } from "../called.ts";
import { json, type Operation, operation } from "../operation.ts";
import { parse } from "../request.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import type { WorkerServices } from "../worker-services.ts";

/** POST /jobs. */
export const submissionRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "post",
    path: "/jobs",
    id: "submitJob",
    summary: "Submit a job, or get the one that the idempotency key already brought about",
    headers: {
      "Idempotency-Key": "in place of the member idempotency_key",
      traceparent: "the trace that the job belongs to (W3C Trace Context); kept, and handed to it as TRACEPARENT",
      tracestate: "what goes with it; TRACESTATE",
    },
    body: JobSubmission,
    answer: { kind: "json", schema: JobReceipt, status: [201, 200] },
    errors: [
      "job_submission_conflict",
      "job_submission_refused",
      "jarvis_submission_refused",
      "agent_submission_refused",
      "mcp_admission_refused",
      "artifact_not_found",
      "resource_ownership_refused",
      "job_cluster_mismatch",
      "engine_unavailable",
      "scheduler_unavailable",
      "payload_too_large",
      "active_job_capacity_reached",
      "storage_admission_refused",
      "queue_unavailable",
      "shutting_down",
    ],
    handler: async ({ c, body }) => {
      const named = { ...body, cluster: ownName(c, services.cluster, body.cluster) };
      const submission = withHeaderKey(named, c.req.header("idempotency-key"));
      checkFor(services, submission);
      const trace = traceContext(c.req.header("traceparent"), c.req.header("tracestate"));
      const { job, existing } = await admitted(services, submission, trace);
      return json({ ...job, existing }, existing ? 200 : 201, {
        // Relative, because the desktop serves the same below /clusters/{name}.
        location: `jobs/${job.job_id}`,
      });
    },
  }),
];

/** Refuse what this worker never takes. */
function checkFor(services: WorkerServices, submission: JobSubmission): void {
  if (submission.cluster !== services.cluster) {
    throw new RelayError("job_cluster_mismatch", `this worker serves ${services.cluster}, the job is for ${submission.cluster}`, {
      expected: services.cluster,
      received: submission.cluster,
    });
  }
  if (!services.engines.has(submission.kind)) {
    throw new RelayError("engine_unavailable", `this worker runs no jobs of kind ${submission.kind}`, {
      kind: submission.kind,
      available: [...services.engines],
    });
  }
  const { spec } = submission;
  if (!("scheduler" in spec) || spec.scheduler === undefined) return;
  requireScheduler(services, spec.scheduler.provider).check(spec.scheduler, "script" in spec ? (spec.script ?? null) : null);
}

/**
 * The scheduler of that name; null stands for the cluster's own.
 *
 * @throws RelayError scheduler_unavailable
 */
export function requireScheduler(
  { scheduler, cluster }: Pick<WorkerServices, "scheduler" | "cluster">,
  name: SchedulerName | null,
): SchedulerServices {
  const available = scheduler?.providers() ?? [];
  if (scheduler !== undefined && (name === null ? available.length > 0 : available.includes(name))) return scheduler;
  throw new RelayError(
    "scheduler_unavailable",
    available.length === 0
      ? `the worker of ${cluster} has no scheduler`
      : `the worker of ${cluster} has ${available.join(" and ")}, and no ${name}`,
    { requested: name, available: [...available], cluster },
  );
}

/** Why a worker may take nothing new for now. What a key has brought about before is not new. */
const NOT_NOW: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "shutting_down",
  "storage_admission_refused",
  "queue_unavailable",
  "engine_unavailable",
  "jarvis_submission_refused",
  "agent_submission_refused",
  "mcp_admission_refused",
]);

async function admitted(
  services: WorkerServices,
  submission: JobSubmission,
  trace: TraceContext | null,
): Promise<{ readonly job: Job; readonly existing: boolean }> {
  try {
    if (services.draining.aborted) throw new RelayError("shutting_down", "the worker is draining and takes no new jobs");
    await services.admit();
    const lane = await services.laneFor(submission);
    const answer = services.store.submit(submission, lane, trace);
    services.workExpected(lane);
    return await answer;
  } catch (error) {
    if (!(error instanceof RelayError) || !NOT_NOW.has(error.code)) throw error;
    const job = await services.store.submitted(submission);
    if (job === null) throw error;
    return { job, existing: true };
  }
}

function withHeaderKey(submission: JobSubmission, header: string | undefined): JobSubmission {
  if (header === undefined) return submission;
  const key = parse(IdempotencyKey, header, "header Idempotency-Key");
  if (submission.idempotency_key !== undefined && submission.idempotency_key !== key) {
    throw new RelayError("request_validation_failed", "the header Idempotency-Key and the member idempotency_key differ");
  }
  return { ...submission, idempotency_key: key };
}
