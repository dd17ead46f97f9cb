import type { QueueStore } from "../../store.ts";
import { artifact, artifacts } from "../artifacts.ts";
import { appendEvents, events, latestEvent } from "../events.ts";
import { latestProgress, progress, recordProgress } from "../progress.ts";
import { recordTaskEvent, task, taskEvents, tasks } from "../tasks.ts";
import type { Calls } from "./access.ts";

type RecordCalls = Pick<
  QueueStore,
  | "appendEvents"
  | "events"
  | "latestEvent"
  | "tasks"
  | "task"
  | "recordTaskEvent"
  | "taskEvents"
  | "recordProgress"
  | "progress"
  | "latestProgress"
  | "artifacts"
  | "artifact"
>;

/** What the store does with what jobs tell and leave. */
export const recordCalls = ({ read, write }: Calls): RecordCalls => ({
  appendEvents: (jobId, added) => write((w) => appendEvents(w, jobId, added)),
  events: (jobId, page) => read((r) => events(r, jobId, page)),
  latestEvent: (jobId, type, member) => read((r) => latestEvent(r, jobId, type, member)),
  tasks: (jobId, page) => read((r) => tasks(r, jobId, page)),
  task: (taskId) => read((r) => task(r, taskId)),
  recordTaskEvent: (taskId, event) => write((w) => recordTaskEvent(w, taskId, event)),
  taskEvents: (taskId, page) => read((r) => taskEvents(r, taskId, page)),
  recordProgress: (jobId, report) => write((w) => recordProgress(w, jobId, report)),
  progress: (jobId, page) => read((r) => progress(r, jobId, page)),
  latestProgress: (jobId) => read((r) => latestProgress(r, jobId)),
  artifacts: (jobId, page) => read((r) => artifacts(r, jobId, page)),
  artifact: (artifactId) => read((r) => artifact(r, artifactId)),
});
