import * as v from "valibot";
import { Artifact } from "../../domain/artifact.ts";
import { Job, JobReceipt } from "../../domain/job.ts";
import { Id, Metadata, recordOf, text } from "../../domain/primitives.ts";
import { NewProgress } from "../../domain/progress.ts";
import { NewTaskEvent } from "../../domain/task.ts";
import { JobWaitResult } from "../../domain/views.ts";

const Path = text(4_096);

/** With --wait: the job with what was observed. */
export const JobSubmitted = v.union([JobReceipt, JobWaitResult]);
/** The same of a cancellation. */
export const JobCanceled = v.union([Job, JobWaitResult]);

/** The record; with -o also where its file is now. */
export const ArtifactRead = v.union([Artifact, v.strictObject({ ...Artifact.entries, path: Path })]);

export const JobFetched = v.strictObject({
  job_id: Id,
  directory: Path,
  files: v.array(
    v.strictObject({
      ...Artifact.entries,
      path: Path,
      /** Whether it came now; it was there already where it did not. */
      fetched: v.boolean(),
    }),
  ),
});

/** What was written for the worker to read. */
export const ProgressReported = v.strictObject({ type: v.literal("progress"), ...NewProgress.entries });
export const TaskEventReported = v.strictObject({ type: v.literal("task-event"), ...NewTaskEvent.entries });

/** PROV-JSON (W3C Member Submission, 24 April 2013), or what was written where. */
export const JobProvenance = v.union([
  v.strictObject({ job_id: Id, format: v.literal("json"), path: Path }),
  v.strictObject({
    job_id: Id,
    format: v.literal("ro-crate"),
    path: v.nullable(Path),
    files: v.array(
      v.strictObject({
        artifact_id: Id,
        name: Path,
        role: v.picklist(["object", "result"]),
        /** Null where it is only named. */
        path_in_crate: v.nullable(Path),
      }),
    ),
  }),
  v.looseObject({ prefix: recordOf(v.string(), v.string()), activity: Metadata, entity: Metadata }),
]);
