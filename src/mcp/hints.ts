import { type ErrorCode, isRelayError, RelayError } from "../domain/errors.ts";

/** What an agent does about a failure that a person would meet with a command. */
const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  cluster_not_found: "relay_list_clusters has the names",
  job_not_found: "relay_list_jobs has the jobs of a cluster",
  job_submission_conflict: "relay_status shows the job that has this key; another idempotency_key, or none, submits a new one",
  task_not_found: "relay_list_tasks has the tasks of a job",
  artifact_not_found: "relay_list_artifacts has what a job left",
};

/** The same failure with a hint that an agent can follow, where there is one. What a person has to do is left as it is. */
export function forAgent(failure: RelayError): RelayError {
  const hint = HINTS[failure.code] ?? unasked(failure);
  return hint === null ? failure : new RelayError(failure.code, failure.message, failure.data, hint, { cause: failure });
}

/** Of a record that may be on clusters which could not be asked. */
const unasked = (failure: RelayError): string | null =>
  isRelayError(failure, "link_down") && Array.isArray(failure.data["clusters"])
    ? "ask again with cluster, where you know it, or when relay_list_clusters says that its link is up"
    : null;
