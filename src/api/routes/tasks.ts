import { LIMITS } from "../../domain/limits.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { NewTaskEvent, Task, TaskEvent } from "../../domain/task.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";
import { AHEAD_BYTES, type Growing, isCut, streamRoutes } from "./streams.ts";

/** Tasks and their timelines. */
export const taskRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;
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
    ...streamRoutes(
      services,
      {
        path: "/tasks/:id/events",
        id: "streamTaskEvents",
        summary: "The timeline as it grows; ends with `terminal` when the job has ended",
        schema: TaskEvent,
        errors: ["task_not_found"],
      },
      (id, { limit }) => growingTimeline(services, id, limit ?? LIMITS.pageMax),
    ),
  ];
};

async function growingTimeline({ store }: WorkerServices, taskId: string, limit: number): Promise<Growing> {
  const { job_id: jobId } = await store.task(taskId);
  return {
    jobId,
    ended: { task_id: taskId },
    async look(cursor) {
      const { state } = await store.job(jobId);
      const page = await store.taskEvents(taskId, { cursor, limit, maxBytes: AHEAD_BYTES });
      const messages = page.items.map((event) => ({ event: "task_event", id: event.seq, data: event }));
      return { state, messages, next_cursor: page.next_cursor, more: isCut(page) };
    },
  };
}
