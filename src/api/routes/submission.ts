import { RelayError } from "../../domain/errors.ts";
import { IdempotencyKey, JobReceipt, JobSubmission } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { json, type Operation, operation } from "../operation.ts";
import { parse } from "../request.ts";
import type { WorkerServices } from "../worker-services.ts";

/** POST /jobs. */
export const submissionRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "post",
    path: "/jobs",
    id: "submitJob",
    summary: "Submit a job, or get the one that the idempotency key already brought about",
    headers: { "Idempotency-Key": "in place of the member idempotency_key" },
    body: JobSubmission,
    answer: { kind: "json", schema: JobReceipt, status: [201, 200] },
    errors: [
      "job_submission_conflict",
      "job_cluster_mismatch",
      "engine_unavailable",
      "payload_too_large",
      "active_job_capacity_reached",
      "storage_admission_refused",
      "shutting_down",
    ],
    handler: async ({ c, body }) => {
      const submission = withHeaderKey(body, c.req.header("idempotency-key"));
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
      const specBytes = Buffer.byteLength(JSON.stringify(submission.spec));
      if (specBytes > LIMITS.specBytes) {
        throw new RelayError("payload_too_large", `the spec takes ${specBytes} bytes, more than ${LIMITS.specBytes}`, {
          max_bytes: LIMITS.specBytes,
        });
      }
      if (services.draining.aborted) throw new RelayError("shutting_down", "the worker is draining and takes no new jobs");
      await services.admit();
      const admitted = services.store.submit(submission, "workload");
      services.workExpected("workload");
      const { job, existing } = await admitted;
      return json({ ...job, existing }, existing ? 200 : 201, {
        // Relative, because the desktop serves the same below /clusters/{name}.
        location: `jobs/${job.job_id}`,
      });
    },
  }),
];

function withHeaderKey(submission: JobSubmission, header: string | undefined): JobSubmission {
  if (header === undefined) return submission;
  const key = parse(IdempotencyKey, header, "header Idempotency-Key");
  if (submission.idempotency_key !== undefined && submission.idempotency_key !== key) {
    throw new RelayError("request_validation_failed", "the header Idempotency-Key and the member idempotency_key differ");
  }
  return { ...submission, idempotency_key: key };
}
