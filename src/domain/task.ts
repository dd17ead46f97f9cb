import * as v from "valibot";
import { Id, looseText, Metadata, Sequence, Timestamp, text } from "./primitives.ts";

export const TASK_STATES = ["queued", "running", "succeeded", "failed", "canceled"] as const;
export const TaskState = v.picklist(TASK_STATES);
export type TaskState = v.InferOutput<typeof TaskState>;

/** A part of a job that has a timeline of its own. Every job has at least one. */
export const Task = v.strictObject({
  task_id: Id,
  job_id: Id,
  /** From 1 within the job. */
  sequence: Sequence,
  name: text(256),
  /** Follows the job's state. */
  state: TaskState,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Task = v.InferOutput<typeof Task>;

export const TaskEventStatus = v.picklist(["planned", "running", "succeeded", "warning", "error", "canceled"]);
export type TaskEventStatus = v.InferOutput<typeof TaskEventStatus>;

const eventFields = {
  event_type: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_.-]{0,127}$/, "must be lower case letters, digits, _ . -")),
  label: text(256),
  summary: text(4_096),
  detail: v.optional(v.nullable(looseText(65_536)), null),
  path_refs: v.optional(v.pipe(v.array(text(4_096)), v.maxLength(1_000)), []),
  artifact_refs: v.optional(v.pipe(v.array(Id), v.maxLength(1_000)), []),
  metadata: v.optional(Metadata, {}),
};

/** What a client or a job sends to add to a task's timeline. */
export const NewTaskEvent = v.strictObject({ ...eventFields, status: v.optional(TaskEventStatus, "running") });
export type NewTaskEvent = v.InferOutput<typeof NewTaskEvent>;
export type NewTaskEventInput = v.InferInput<typeof NewTaskEvent>;

/** One entry of a task's timeline. Immutable. */
export const TaskEvent = v.strictObject({
  task_id: Id,
  job_id: Id,
  /** From 1 within the task, without gaps. */
  seq: Sequence,
  ...eventFields,
  detail: v.nullable(looseText(65_536)),
  path_refs: v.array(text(4_096)),
  artifact_refs: v.array(Id),
  metadata: Metadata,
  status: TaskEventStatus,
  created_at: Timestamp,
});
export type TaskEvent = v.InferOutput<typeof TaskEvent>;
