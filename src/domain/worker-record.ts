import * as v from "valibot";
import { ProcessIdentity } from "./attempt.ts";
import { Id, text } from "./primitives.ts";

/** The name of the record, in the cluster's state directory. */
export const WORKER_RECORD = "worker.json";

/** What a worker that serves leaves beside its queue, so that a desktop that comes to its host, or to another one, finds it. */
export const WorkerRecord = v.object({
  process: ProcessIdentity,
  version: text(128),
  worker_id: Id,
  /** Path of its HTTP socket, on its own host. */
  socket: v.pipe(text(1_024), v.startsWith("/")),
});
export type WorkerRecord = v.InferOutput<typeof WorkerRecord>;
