import * as v from "valibot";
import { Event } from "../../domain/event.ts";
import { LIMITS } from "../../domain/limits.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import type { PageRequest } from "../../queue/store.ts";
import { Monitor } from "../answers.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";
import { jobStatus } from "./jobs.ts";
import { AHEAD_BYTES, type Growing, isCut, POLL_REFUSAL, PollSeconds, streamRoutes } from "./streams.ts";

const MonitorQuery = v.strictObject({ ...PageQuery.entries, poll_seconds: PollSeconds });

/** Events of a job: pages, streams, and the monitor document that joins them to the status. */
export const eventRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;
  return [
    operation({
      method: "get",
      path: "/jobs/:id/events",
      id: "listEvents",
      summary: "Events of the job, in order",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("events", Event) },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        const { items, ...page } = await store.events(param("id"), query);
        return json({ events: items, ...page });
      },
    }),
    ...streamRoutes(
      services,
      {
        path: "/jobs/:id/events",
        id: "streamEvents",
        summary: "Events as they are committed; ends with `terminal`",
        schema: Event,
        errors: ["job_not_found"],
      },
      (id, { limit }) => growingEvents(services, id, limit ?? LIMITS.pageMax),
    ),
    operation({
      method: "get",
      path: "/jobs/:id/monitor",
      id: "monitorJob",
      summary: "The status document with a page of events",
      query: MonitorQuery,
      parameterRefusals: POLL_REFUSAL,
      answer: { kind: "json", schema: Monitor },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        const { document } = await monitor(services, param("id"), query);
        return json(document);
      },
    }),
    ...streamRoutes(
      services,
      {
        path: "/jobs/:id/monitor",
        id: "streamMonitor",
        summary: "The monitor document each time that something was committed; ends with `terminal`",
        schema: Monitor,
        errors: ["job_not_found"],
      },
      (id, { limit }) => growingMonitor(services, id, limit ?? LIMITS.pageDefault),
    ),
  ];
};

async function growingEvents({ store }: WorkerServices, jobId: string, limit: number): Promise<Growing> {
  await store.job(jobId);
  return {
    jobId,
    async look(cursor) {
      const { state } = await store.job(jobId);
      const page = await store.events(jobId, { cursor, limit, maxBytes: AHEAD_BYTES });
      const messages = page.items.map((event) => ({ event: event.event_type, id: event.seq, data: event }));
      return { state, messages, next_cursor: page.next_cursor, more: isCut(page) };
    },
  };
}

async function growingMonitor(services: WorkerServices, jobId: string, limit: number): Promise<Growing> {
  await services.store.job(jobId);
  return {
    jobId,
    async look(cursor) {
      const { document, more } = await monitor(services, jobId, { cursor, limit, maxBytes: AHEAD_BYTES });
      const { next_cursor } = document;
      const messages = [{ event: "monitor", id: next_cursor - 1, data: document }];
      return { state: document.job.state, messages, next_cursor, more };
    },
  };
}

/** The document, and whether there were more events than fit into it. */
async function monitor(services: WorkerServices, jobId: string, request: PageRequest) {
  const status = await jobStatus(services, jobId);
  const page = await services.store.events(jobId, request);
  return { document: { ...status, events: page.items, next_cursor: page.next_cursor }, more: isCut(page) };
}
