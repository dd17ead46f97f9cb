import { canonicalJson, sha256Hex } from "../../lib/digest.ts";

/** The id under which JARVIS runs a job: whoever knows the job knows it, and JARVIS takes each only once. */
export function executionIdOf(job: { readonly cluster: string; readonly idempotency_key: string; readonly job_id: string }): string {
  const { cluster, idempotency_key: key, job_id } = job;
  return `jarvis_${sha256Hex(canonicalJson({ cluster, key, job_id })).slice(0, 32)}`;
}
