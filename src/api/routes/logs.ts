import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS, LogChunk, LogStream } from "../../domain/log.ts";
import { flag, whole } from "../../domain/query.ts";
import { AttemptLogs } from "../answers.ts";
import { contentBody, contentOf } from "../content-body.ts";
import { json, type Operation, operation } from "../operation.ts";
import { CONDITIONS, conditionsOf, contentHeaders, wantedOf } from "../range.ts";
import { LIVE } from "../sse.ts";
import type { WorkerServices } from "../worker-services.ts";

const At = { offset: v.optional(whole(0)), tail: v.optional(whole(0)) };
const ChunkQuery = v.strictObject({
  ...At,
  limit: v.optional(whole(1, LIMITS.logReadMaxBytes), String(LIMITS.logReadDefaultBytes)),
});
const ContentQuery = v.strictObject({ ...At, follow: v.optional(flag, "false") });

const AttemptNumber = whole(1);

/** Logs as text by offset, and as bytes. */
export const logRoutes = (services: WorkerServices): Operation[] => [...textRoutes(services), contentRoute(services)];

const textRoutes = (services: WorkerServices): Operation[] => {
  const { store, logs } = services;
  return [
    operation({
      method: "get",
      path: "/jobs/:id/logs/:stream",
      id: "readLog",
      summary: "A piece of a log as text; offsets are bytes",
      query: ChunkQuery,
      answer: { kind: "json", schema: LogChunk },
      errors: ["job_not_found", "log_stream_invalid"],
      handler: async ({ param, query }) => {
        const stream = logStream(param("stream"));
        await store.job(param("id"));
        const at = query.tail === undefined ? { offset: query.offset ?? 0 } : { tail: query.tail };
        return json(await logs.chunk(param("id"), stream, at, query.limit));
      },
    }),
    operation({
      method: "get",
      path: "/jobs/:id/attempts/:attempt/logs",
      id: "attemptLogs",
      summary: "Where the output of one attempt lies in the job's logs; one segment per stream",
      answer: { kind: "json", schema: AttemptLogs },
      errors: ["job_not_found", "not_found"],
      handler: async ({ param }) => {
        const jobId = param("id");
        const { attempts } = await store.job(jobId);
        const number = v.safeParse(AttemptNumber, param("attempt"));
        const segments = number.success ? (await store.segments(jobId)).filter((segment) => segment.attempt === number.output) : [];
        if (segments.length === 0) {
          const asked = param("attempt").slice(0, 20);
          throw new RelayError("not_found", `${jobId} has no attempt ${asked}; it has had ${attempts}`, { job_id: jobId, attempts });
        }
        return json({ segments });
      },
    }),
  ];
};

const contentRoute = (services: WorkerServices): Operation =>
  operation({
    method: "get",
    path: "/jobs/:id/logs/:stream/content",
    id: "readLogContent",
    summary: "The log's bytes; with follow=true they go on until the job has ended",
    headers: CONDITIONS,
    query: ContentQuery,
    answer: { kind: "bytes", status: [200, 206, 304] },
    errors: ["job_not_found", "log_stream_invalid", "log_not_found", "precondition_failed", "range_not_satisfiable"],
    handler: async ({ c, param, query }) => {
      const jobId = param("id");
      const stream = logStream(param("stream"));
      await services.store.job(jobId);
      const { size_bytes: size, complete } = await services.logs.state(jobId, stream);
      const offset = query.tail === undefined ? (query.offset ?? 0) : Math.max(0, size - query.tail);
      const signal = AbortSignal.any([c.req.raw.signal, services.draining]);
      const answer = async (range: { offset: number; end: number | null }, status: number, headers: Record<string, string>) => {
        const bytes = () => services.logs.bytes(jobId, stream, range, signal);
        // HEAD asks for the headers only: nothing is opened for it.
        const head = c.req.raw.method === "HEAD";
        const body = head ? null : range.end === null ? contentBody(bytes()) : await contentOf(bytes(), range.end - range.offset);
        return new Response(body, {
          status,
          headers: { "content-type": "application/octet-stream", "clio-relay-log-offset": String(range.offset), ...headers },
        });
      };
      if (query.follow) return answer({ offset, end: null }, 200, LIVE);
      const etag = complete ? `"${jobId}-${stream}-${size}"` : null;
      const asked = wantedOf(conditionsOf(c.req.raw), size, etag);
      if (asked === "unchanged") return new Response(null, { status: 304, headers: { etag: etag! } });
      const part = asked ?? { start: Math.min(offset, size), end: size };
      // Nothing can be said of them once the answer has begun.
      await services.logs.check(jobId, stream, { offset: part.start, end: part.end });
      return answer({ offset: part.start, end: part.end }, asked === null ? 200 : 206, {
        ...contentHeaders(size, asked, etag),
        "content-length": String(part.end - part.start),
      });
    },
  });

function logStream(name: string): LogStream {
  const result = v.safeParse(LogStream, name);
  if (!result.success)
    throw new RelayError("log_stream_invalid", `there is no stream ${JSON.stringify(name.slice(0, 64))}`, { streams: LOG_STREAMS });
  return result.output;
}
