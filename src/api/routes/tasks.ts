import * as v from "valibot";
import { LIMITS } from "../../domain/limits.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { Sequence } from "../../domain/primitives.ts";
import { NewProgress, Progress } from "../../domain/progress.ts";
import { NewTaskEvent, Task, TaskEvent } from "../../domain/task.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { json, type Operation, operation } from "../operation.ts";
import { type OutgoingMessage, sseResponse, waker } from "../sse.ts";
import type { WorkerServices } from "../worker-services.ts";
import { streamCursor } from "./events.ts";

const StreamQuery = v.strictObject({ cursor: v.optional(v.pipe(v.string(), v.toNumber(), Sequence)) });

/** Tasks, their timelines, and progress. */
export const taskRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;

  async function* timeline(taskId: string, jobId: string, from: number, signal: AbortSignal): AsyncGenerator<OutgoingMessage> {
    let cursor = from;
    const change = waker((listener) => store.subscribe(`job:${jobId}`, listener), signal);
    try {
      while (!signal.aborted) {
        const { state } = await store.job(jobId);
        const page = await store.taskEvents(taskId, { cursor, limit: LIMITS.pageMax });
        for (const event of page.items) yield { event: "task_event", id: event.seq, data: event };
        cursor = page.next_cursor;
        if (page.items.length > 0) continue;
        if (isTerminal(state)) {
          yield { event: "terminal", id: cursor - 1, data: { task_id: taskId, job_id: jobId, state } };
          return;
        }
        await change.wait();
      }
    } finally {
      change.close();
    }
  }

  return [
    operation({
      method: "get",
      path: "/jobs/:id/tasks",
      id: "listTasks",
      summary: "Tasks of the job",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("tasks", Task) },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        await store.job(param("id"));
        const { items, ...page } = await store.tasks(param("id"), query);
        return json({ tasks: items, ...page });
      },
    }),
    operation({
      method: "get",
      path: "/tasks/:id",
      id: "getTask",
      summary: "The task record",
      answer: { kind: "json", schema: Task },
      errors: ["task_not_found"],
      handler: async ({ param }) => json(await store.task(param("id"))),
    }),
    operation({
      method: "get",
      path: "/tasks/:id/events",
      id: "listTaskEvents",
      summary: "The task's timeline",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("events", TaskEvent) },
      errors: ["task_not_found"],
      handler: async ({ param, query }) => {
        await store.task(param("id"));
        const { items, ...page } = await store.taskEvents(param("id"), query);
        return json({ events: items, ...page });
      },
    }),
    operation({
      method: "post",
      path: "/tasks/:id/events",
      id: "recordTaskEvent",
      summary: "Add to the task's timeline",
      body: NewTaskEvent,
      answer: { kind: "json", schema: TaskEvent, status: [201] },
      errors: ["task_not_found", "storage_admission_refused"],
      handler: async ({ param, body }) => json(await store.recordTaskEvent(param("id"), body), 201),
    }),
    operation({
      method: "get",
      path: "/tasks/:id/events/sse",
      id: "streamTaskEvents",
      summary: "The timeline as it grows; ends with `terminal` when the job has ended",
      headers: { "Last-Event-ID": "seq of the last entry that the client has" },
      query: StreamQuery,
      answer: { kind: "events", schema: TaskEvent },
      errors: ["task_not_found"],
      handler: async ({ c, param, query }) => {
        const task = await store.task(param("id"));
        const cursor = streamCursor(query.cursor, c.req.header("last-event-id"));
        return sseResponse({
          messages: (signal) => timeline(task.task_id, task.job_id, cursor, signal),
          signal: AbortSignal.any([c.req.raw.signal, services.draining]),
          clock: services.clock,
        });
      },
    }),
    operation({
      method: "get",
      path: "/jobs/:id/progress",
      id: "listProgress",
      summary: "Progress reports of the job",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("progress", Progress) },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        await store.job(param("id"));
        const { items, ...page } = await store.progress(param("id"), query);
        return json({ progress: items, ...page });
      },
    }),
    operation({
      method: "post",
      path: "/jobs/:id/progress",
      id: "recordProgress",
      summary: "Report progress",
      body: NewProgress,
      answer: { kind: "json", schema: Progress, status: [201] },
      errors: ["job_not_found", "storage_admission_refused"],
      handler: async ({ param, body }) => json(await store.recordProgress(param("id"), body), 201),
    }),
  ];
};
