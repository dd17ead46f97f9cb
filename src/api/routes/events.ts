import * as v from "valibot";
import { Event } from "../../domain/event.ts";
import { LIMITS } from "../../domain/limits.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { Sequence } from "../../domain/primitives.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { JobStatus } from "../../domain/views.ts";
import { json, type Operation, operation } from "../operation.ts";
import { parse } from "../request.ts";
import { type OutgoingMessage, sseResponse, waker } from "../sse.ts";
import type { WorkerServices } from "../worker-services.ts";
import { jobStatus } from "./jobs.ts";

const StreamQuery = v.strictObject({ cursor: v.optional(v.pipe(v.string(), v.toNumber(), Sequence)) });
const LastEventId = v.pipe(v.string(), v.toNumber(), v.safeInteger(), v.minValue(0));

const Monitor = v.strictObject({ ...JobStatus.entries, events: v.array(Event), next_cursor: Sequence });

/** Where a stream starts: after Last-Event-ID when the client comes back, else at the cursor, else at the beginning. */
export function streamCursor(cursor: number | undefined, lastEventId: string | undefined): number {
  if (lastEventId !== undefined && lastEventId !== "") return parse(LastEventId, lastEventId, "header Last-Event-ID") + 1;
  return cursor ?? 1;
}

/** Events of a job: pages, streams, and the monitor document that joins them to the status. */
export const eventRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;

  async function* eventMessages(jobId: string, from: number, signal: AbortSignal): AsyncGenerator<OutgoingMessage> {
    let cursor = from;
    const change = waker((listener) => store.subscribe(`job:${jobId}`, listener), signal);
    try {
      while (!signal.aborted) {
        // The state is read first: when it is terminal, the page that follows holds everything up to the end.
        const { state } = await store.job(jobId);
        const page = await store.events(jobId, { cursor, limit: LIMITS.pageMax });
        for (const event of page.items) yield { event: event.event_type, id: event.seq, data: event };
        cursor = page.next_cursor;
        if (page.items.length > 0) continue;
        if (isTerminal(state)) {
          yield { event: "terminal", id: cursor - 1, data: { job_id: jobId, state } };
          return;
        }
        await change.wait();
      }
    } finally {
      change.close();
    }
  }

  async function monitorDocument(jobId: string, cursor: number, limit: number) {
    const status = await jobStatus(services, jobId);
    const page = await store.events(jobId, { cursor, limit });
    return { ...status, events: page.items, next_cursor: page.next_cursor };
  }

  async function* monitorMessages(jobId: string, from: number, signal: AbortSignal): AsyncGenerator<OutgoingMessage> {
    let cursor = from;
    const change = waker((listener) => store.subscribe(`job:${jobId}`, listener), signal);
    try {
      while (!signal.aborted) {
        const document = await monitorDocument(jobId, cursor, LIMITS.pageDefault);
        cursor = document.next_cursor;
        yield { event: "monitor", id: cursor - 1, data: document };
        if (document.events.length > 0) continue;
        if (document.terminal) {
          yield { event: "terminal", id: cursor - 1, data: { job_id: jobId, state: document.job.state } };
          return;
        }
        await change.wait();
      }
    } finally {
      change.close();
    }
  }

  const stream =
    (messages: (jobId: string, cursor: number, signal: AbortSignal) => AsyncGenerator<OutgoingMessage>): Operation["handler"] =>
    async ({ c, param, query }) => {
      const jobId = param("id");
      await store.job(jobId);
      const cursor = streamCursor((query as { cursor?: number }).cursor, c.req.header("last-event-id"));
      return sseResponse({
        messages: (signal) => messages(jobId, cursor, signal),
        signal: AbortSignal.any([c.req.raw.signal, services.draining]),
        clock: services.clock,
      });
    };

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
        await store.job(param("id"));
        const { items, ...page } = await store.events(param("id"), query);
        return json({ events: items, ...page });
      },
    }),
    operation({
      method: "get",
      path: "/jobs/:id/events/sse",
      id: "streamEvents",
      summary: "Events as they are committed; ends with `terminal`",
      headers: { "Last-Event-ID": "seq of the last event that the client has" },
      query: StreamQuery,
      answer: { kind: "events", schema: Event },
      errors: ["job_not_found"],
      handler: stream(eventMessages),
    }),
    operation({
      method: "get",
      path: "/jobs/:id/monitor",
      id: "monitorJob",
      summary: "The status document with a page of events",
      query: PageQuery,
      answer: { kind: "json", schema: Monitor },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => json(await monitorDocument(param("id"), query.cursor, query.limit)),
    }),
    operation({
      method: "get",
      path: "/jobs/:id/monitor/sse",
      id: "streamMonitor",
      summary: "The monitor document each time that something was committed; ends with `terminal`",
      headers: { "Last-Event-ID": "seq of the last event that the client has" },
      query: StreamQuery,
      answer: { kind: "events", schema: Monitor },
      errors: ["job_not_found"],
      handler: stream(monitorMessages),
    }),
  ];
};
