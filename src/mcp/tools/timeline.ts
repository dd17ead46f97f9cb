import * as v from "valibot";
import { Id, jsonBytes, Sequence } from "../../domain/primitives.ts";
import { NewProgress } from "../../domain/progress.ts";
import { NewTaskEvent, Task, type TaskEvent, TaskEventStatus } from "../../domain/task.ts";
import { asked } from "../asked.ts";
import { ADDS, defineTool, READS, type Tool } from "../tool.ts";
import { fitting, progressView, TRUNCATED } from "../views.ts";
import { JOB, PAGED, said, WHERE } from "./arguments.ts";

/** What is longer is cut, or left out. */
const DETAIL_LENGTH = 8_192;
const METADATA_BYTES = 8_192;

const EventOfTask = v.object({
  seq: Sequence,
  event_type: v.string(),
  label: v.string(),
  status: TaskEventStatus,
  summary: v.string(),
  detail: v.nullable(v.string()),
  path_refs: v.array(v.string()),
  artifact_refs: v.array(Id),
  metadata: v.record(v.string(), v.unknown()),
  shortened: v.optional(v.pipe(v.boolean(), v.description("whether detail, references or metadata are not all here"))),
  created_at: v.string(),
});

const REFERENCES = 100;

function eventOfTask(event: TaskEvent): v.InferOutput<typeof EventOfTask> {
  const { seq, event_type, label, status, summary, detail, path_refs, artifact_refs, metadata, created_at } = event;
  const small = jsonBytes(metadata) <= METADATA_BYTES;
  const shortened = !small || (detail?.length ?? 0) > DETAIL_LENGTH || path_refs.length > REFERENCES || artifact_refs.length > REFERENCES;
  return {
    seq,
    event_type,
    label,
    status,
    summary,
    detail: detail === null ? null : detail.slice(0, DETAIL_LENGTH).toWellFormed(),
    path_refs: path_refs.slice(0, REFERENCES),
    artifact_refs: artifact_refs.slice(0, REFERENCES),
    metadata: small ? { ...metadata } : {},
    ...(shortened ? { shortened } : {}),
    created_at,
  };
}

const TASK = { task_id: said(Id, "id of the task, as relay_list_tasks gives it"), ...WHERE };
const { event_type, label, summary, detail, metadata, status, path_refs, artifact_refs } = NewTaskEvent.entries;
const ENTRY = {
  event_type: said(event_type, "what kind of entry it is, such as finding or plan.changed"),
  label: said(label, "what it is about, in a few words: entries of one label belong together"),
  summary: said(summary, "what there is to say, in a sentence"),
  detail: said(detail, "all of it, where a sentence does not do"),
  metadata: said(metadata, "for programs"),
  status: said(status, "how what it tells of stands"),
  path_refs: said(path_refs, "paths on the cluster"),
  artifact_refs: said(artifact_refs, "ids of artifacts"),
};

const { label: of, current, total, unit, message, source_event_seq, metadata: more } = NewProgress.entries;
const REPORT = {
  label: said(of, "what is counted; the latest report of each label is the one that counts"),
  current: said(current, "how much is done"),
  total: said(total, "of how much"),
  unit: said(unit, "of what, such as steps"),
  message: said(message, "what there is to say besides"),
  source_event_seq: said(source_event_seq, "seq of the event that told of it"),
  metadata: said(more, "for programs"),
};

const ProgressOf = v.object({
  label: v.string(),
  current: v.nullable(v.number()),
  total: v.nullable(v.number()),
  unit: v.nullable(v.string()),
  message: v.nullable(v.string()),
  created_at: v.string(),
});

export const timelineTools: readonly Tool[] = [
  defineTool({
    name: "relay_list_tasks",
    title: "The tasks of a job",
    profile: "user",
    description: "Lists the tasks of a job; every job has at least one. A task has a timeline of its own: relay_watch_task_events.",
    hints: READS,
    clusters: "all",
    input: v.strictObject({ ...JOB, ...PAGED }),
    output: v.object({
      job_id: Id,
      tasks: v.array(
        v.object({
          task_id: Id,
          sequence: Sequence,
          name: v.string(),
          state: Task.entries.state,
          created_at: v.string(),
          updated_at: v.string(),
        }),
      ),
      next_cursor: Sequence,
      total: v.number(),
      truncated: TRUNCATED,
    }),
    async run({ job_id, cursor, limit, ...where }, call) {
      const { client, entry } = await call.clusters.ofJob(job_id, where, call.signal);
      const page = await asked(`the worker of ${entry.name}`, call.signal, (signal) => client.tasks(job_id, { cursor, limit, signal }));
      const { items, truncated } = fitting(page.tasks.map(({ job_id: _of, ...task }) => task));
      return { job_id, tasks: items, next_cursor: truncated ? items.at(-1)!.sequence + 1 : page.next_cursor, total: page.total, truncated };
    },
  }),
  defineTool({
    name: "relay_watch_task_events",
    title: "The timeline of a task",
    profile: "user",
    description:
      "Lists what was added to a task's timeline, oldest first: what an agent found, planned and did. Does not wait; come back with next_cursor to see what is new.",
    hints: READS,
    clusters: "all",
    input: v.strictObject({ ...TASK, ...PAGED }),
    output: v.object({ task_id: Id, events: v.array(EventOfTask), next_cursor: Sequence, total: v.number(), truncated: TRUNCATED }),
    async run({ task_id, cursor, limit, ...where }, call) {
      const { client, entry } = await call.clusters.ofTask(task_id, where, call.signal);
      const page = await asked(`the worker of ${entry.name}`, call.signal, (signal) =>
        client.taskEvents(task_id, { cursor, limit, signal }),
      );
      const { items, truncated } = fitting(page.events.map(eventOfTask));
      return { task_id, events: items, next_cursor: truncated ? items.at(-1)!.seq + 1 : page.next_cursor, total: page.total, truncated };
    },
  }),
  defineTool({
    name: "relay_record_task_event",
    title: "Add to a task's timeline",
    profile: "user",
    description:
      "Adds an entry to a task's timeline, for whoever watches: something found, planned, done or gone wrong, with references to paths on the cluster and to artifacts. Entries stay as they are.",
    hints: ADDS,
    clusters: "all",
    input: v.strictObject({ ...TASK, ...ENTRY }),
    output: EventOfTask,
    async run({ task_id, cluster, route_revision, ...event }, call) {
      const { client, entry } = await call.clusters.ofTask(task_id, { cluster, route_revision }, call.signal);
      const record = (signal: AbortSignal) => client.recordTaskEvent(task_id, event, signal);
      return eventOfTask(await asked(`the worker of ${entry.name}`, call.signal, record));
    },
  }),
  defineTool({
    name: "relay_list_progress",
    title: "What a job reported",
    profile: "admin",
    description: "Lists every report of progress of a job, oldest first. relay_status has the latest of each label.",
    hints: READS,
    clusters: "all",
    input: v.strictObject({ ...JOB, ...PAGED }),
    output: v.object({ job_id: Id, progress: v.array(ProgressOf), next_cursor: Sequence, total: v.number(), truncated: TRUNCATED }),
    async run({ job_id, cursor, limit, ...where }, call) {
      const { client, entry } = await call.clusters.ofJob(job_id, where, call.signal);
      const page = await asked(`the worker of ${entry.name}`, call.signal, (signal) => client.progress(job_id, { cursor, limit, signal }));
      const { items, truncated } = fitting(page.progress);
      const next_cursor = truncated ? items.at(-1)!.sequence + 1 : page.next_cursor;
      return { job_id, progress: items.map(progressView), next_cursor, total: page.total, truncated };
    },
  }),
  defineTool({
    name: "relay_record_progress",
    title: "Report progress of a job",
    profile: "admin",
    description: "Adds a report of progress to a job from outside of it: how far it is, of how much, in which unit.",
    hints: ADDS,
    clusters: "all",
    input: v.strictObject({ ...JOB, ...REPORT }),
    output: ProgressOf,
    async run({ job_id, cluster, route_revision, ...report }, call) {
      const { client, entry } = await call.clusters.ofJob(job_id, { cluster, route_revision }, call.signal);
      const record = (signal: AbortSignal) => client.recordProgress(job_id, report, signal);
      return progressView(await asked(`the worker of ${entry.name}`, call.signal, record));
    },
  }),
];
