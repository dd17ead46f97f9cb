import * as v from "valibot";
import { type ErrorCode, RelayError } from "../../domain/errors.ts";
import type { JobState } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { Page } from "../../domain/page.ts";
import { Id } from "../../domain/primitives.ts";
import { flag, seconds, whole } from "../../domain/query.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { type Operation, operation } from "../operation.ts";
import { parse } from "../request.ts";
import { type OutgoingMessage, sseResponse, waker } from "../sse.ts";
import type { WorkerServices } from "../worker-services.ts";

/** How often somebody may want to be asked; notifications are sooner. */
export const PollSeconds = v.optional(seconds(3_600));
/** What one is that is out of these bounds. */
export const POLL_REFUSAL = { poll_seconds: "poll_interval_invalid" } as const;

/** Query of a stream. */
export const StreamQuery = v.strictObject({
  /** Where to begin; Last-Event-ID wins. */
  cursor: v.optional(whole(1)),
  /** Entries that are read at a time. */
  limit: v.optional(whole(1, LIMITS.pageMax)),
  /** Whether the stream ends with the job. */
  stop_on_terminal: v.optional(flag, "true"),
  /** Whether it ends when everything that there is now has been sent. */
  stop_after_replay: v.optional(flag, "false"),
  /** The least time between two documents of a stream that sends documents. */
  poll_seconds: PollSeconds,
});
export type StreamQuery = v.InferOutput<typeof StreamQuery>;

/** The same of a WebSocket, for which a listener with a token takes it here, too. */
const WebSocketQuery = v.strictObject({ ...StreamQuery.entries, token: v.optional(v.string()) });

const STREAM_HEADERS = { "Last-Event-ID": "id of the last message that the client has" };

/** Text of entries that a stream has read ahead of its client: there are thousands of streams, and any of their clients may take nothing. */
export const AHEAD_BYTES = 64 * 1024;

const LastEventId = whole(0, Number.MAX_SAFE_INTEGER - 1);

/** Where a stream starts: after Last-Event-ID when the client comes back, else at the cursor, else at the beginning. */
export function streamCursor(cursor: number | undefined, lastEventId: string | undefined): number {
  if (lastEventId !== undefined && lastEventId !== "") return parse(LastEventId, lastEventId, "header Last-Event-ID") + 1;
  return cursor ?? 1;
}

/** What there is from a cursor on. */
export interface Look {
  /** The job's state, read before the messages: once it is terminal, no look after this one brings more. */
  readonly state: JobState;
  readonly messages: readonly OutgoingMessage[];
  readonly next_cursor: number;
  /** Whether there is more already. */
  readonly more: boolean;
}

/** Whether a page was cut. An empty one never was: nothing would come of looking again. */
export const isCut = ({ items, next_cursor, total }: Page<unknown>): boolean => items.length > 0 && next_cursor <= total;

/** Something that grows with a job. */
export interface Growing {
  readonly jobId: string;
  /** What the last message says besides the job's id and state. */
  readonly ended?: Readonly<Record<string, unknown>>;
  look(cursor: number): Promise<Look>;
}

/** Data of the message `terminal`: the job has ended. */
const Terminal = v.strictObject({ task_id: v.optional(Id), job_id: Id, state: v.picklist(["succeeded", "failed", "canceled"]) });

/** What a stream is called, and what it sends. */
export interface StreamRoute {
  /** Of what grows; `/sse` and `/ws` come behind it. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Of one message's data, but for the last one. */
  readonly schema: v.GenericSchema;
  readonly errors: readonly ErrorCode[];
}

/**
 * The two routes of a stream. What it answers is what there is, then what comes, until the job has ended or the client leaves. The WebSocket is the server's doing
 * (web-socket.ts), which has the event stream for it; what gets here wants none.
 */
export function streamRoutes(
  services: WorkerServices,
  { path, id, summary, schema, errors }: StreamRoute,
  growing: (id: string, query: StreamQuery) => Promise<Growing>,
): Operation[] {
  const common = { method: "get", headers: STREAM_HEADERS, parameterRefusals: POLL_REFUSAL } as const;
  return [
    operation({
      ...common,
      path: `${path}/sse`,
      id,
      summary,
      query: StreamQuery,
      answer: { kind: "events", schema: v.union([schema, Terminal]) },
      errors,
      handler: async ({ c, param, query }) => {
        const source = await growing(param("id"), query);
        const cursor = streamCursor(query.cursor, c.req.header("last-event-id"));
        return sseResponse({
          messages: (signal) => follow(services, source, cursor, query, signal),
          signal: AbortSignal.any([c.req.raw.signal, services.draining]),
          clock: services.clock,
        });
      },
    }),
    operation({
      ...common,
      path: `${path}/ws`,
      id: `${id}OverWebSocket`,
      summary: `${summary}. Over a WebSocket`,
      query: WebSocketQuery,
      answer: { kind: "web-socket", schema: v.union([schema, Terminal]) },
      errors: ["upgrade_required", ...errors],
      handler: () => {
        throw new RelayError("upgrade_required", "this route answers WebSockets only");
      },
    }),
  ];
}

async function* follow(
  { store, clock }: WorkerServices,
  { jobId, ended, look }: Growing,
  from: number,
  { stop_on_terminal, stop_after_replay, poll_seconds = 0 }: StreamQuery,
  signal: AbortSignal,
): AsyncGenerator<OutgoingMessage> {
  let cursor = from;
  let told = false;
  const change = waker((listener) => store.subscribe(`job:${jobId}`, listener), signal);
  try {
    // A replay that ends has said all; one that a draining worker has no time for breaks off.
    while (stop_after_replay || !signal.aborted) {
      const { state, messages, next_cursor, more } = await look(cursor);
      const sent = clock.monotonic();
      yield* messages;
      cursor = next_cursor;
      if (more) {
        // Others have their turn between two pages: for as long as a client takes them, nothing else would wait.
        await new Promise<void>((resolve) => setImmediate(resolve));
        continue;
      }
      if (isTerminal(state) && !told) {
        told = true;
        yield { event: "terminal", id: cursor - 1, data: { ...ended, job_id: jobId, state } };
        if (stop_on_terminal) return;
      }
      if (stop_after_replay) return;
      await change.wait();
      while (!signal.aborted && clock.monotonic() < sent + poll_seconds * 1_000) {
        await change.wait(Math.max(1, sent + poll_seconds * 1_000 - clock.monotonic()));
      }
    }
  } finally {
    change.close();
  }
}
