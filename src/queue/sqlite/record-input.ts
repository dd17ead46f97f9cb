import type { Outcome } from "../../domain/job.ts";
import { sha256Hex } from "../../lib/digest.ts";
import type { InputFile, RecordedInput } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { artifact, insertArtifacts } from "./artifacts.ts";
import { JobEdit } from "./job-edit.ts";
import { jobRow, toJob } from "./job-rows.ts";
import { type PreparedSubmission, submit } from "./submit.ts";

/** The artifact of an ingest has an id that follows from the job's. */
const artifactIdOf = (jobId: string): string => `artifact_${sha256Hex(`clio-relay.input:${jobId}`).slice(0, 32)}`;

const DONE: Outcome = { reason: "completed", exit_code: null, signal: null, message: "its content is there", residual: [] };

/**
 * Admit an ingest whose content is there, as a job that has succeeded, with its artifact. It takes no slot and does not wait, so that a queue that is full of
 * work is none for it.
 */
export function recordInput(w: Writing, prepared: PreparedSubmission, file: InputFile): RecordedInput {
  const { job, existing } = submit(w, prepared, Number.POSITIVE_INFINITY);
  const artifactId = artifactIdOf(job.job_id);
  if (existing) return { job, artifact: artifact(w, artifactId), existing };
  const edit = new JobEdit(w, jobRow(w, job.job_id));
  insertArtifacts(w, edit, [{ ...file, artifact_id: artifactId, kind: "input" }]);
  edit.move("succeeded");
  edit.row.outcome = JSON.stringify(DONE);
  edit.event({ event_type: "job.succeeded", message: "The input is there." });
  edit.save();
  return { job: toJob(edit.row), artifact: artifact(w, artifactId), existing };
}

/** Which of these digests an input has. */
export const namedInputs = (r: Reading, digests: readonly string[]): ReadonlySet<string> =>
  new Set(digests.filter((digest) => r.sql.get("SELECT 1 FROM artifacts WHERE sha256 = ? AND kind = 'input' LIMIT 1", digest) !== null));
