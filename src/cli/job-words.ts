import type { JobKind, JobState } from "../domain/job.ts";
import type { LogStream } from "../domain/log.ts";
import type { TaskEventStatus } from "../domain/task.ts";

// The words of the schemas once more: the schemas load a validator, which a command that only sends text does not need.
// The types keep both lists the same.

const every =
  <T extends string>() =>
  <const L extends readonly T[]>(...words: [T] extends [L[number]] ? L : never): L =>
    words;

export const JOB_STATES = every<JobState>()("queued", "leased", "running", "succeeded", "failed", "canceled");
export const JOB_KINDS = every<JobKind>()("command", "jarvis", "remote_agent", "mcp_call", "input_ingest");
export const TASK_EVENT_STATUSES = every<TaskEventStatus>()("planned", "running", "succeeded", "warning", "error", "canceled");
export const LOG_STREAMS = every<LogStream>()("stdout", "stderr");
