import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS, LogChunk, LogSegment, LogStream } from "../../domain/log.ts";
import { ByteCount, Sequence } from "../../domain/primitives.ts";
import { json, type Operation, operation } from "../operation.ts";
import { contentHeaders, matchesEtag, parseRange } from "../range.ts";
import type { WorkerServices } from "../worker-services.ts";

const Offset = v.pipe(v.string(), v.toNumber(), ByteCount);
const ChunkQuery = v.strictObject({
  offset: v.optional(Offset),
  tail: v.optional(Offset),
  limit: v.optional(
    v.pipe(v.string(), v.toNumber(), v.safeInteger(), v.minValue(1), v.maxValue(LIMITS.logReadMaxBytes)),
    String(LIMITS.logReadDefaultBytes),
  ),
});
const ContentQuery = v.strictObject({
  offset: v.optional(Offset),
  tail: v.optional(Offset),
  follow: v.optional(
    v.pipe(
      v.picklist(["true", "false", "1", "0"]),
      v.transform((s) => s === "true" || s === "1"),
    ),
    "false",
  ),
});

const AttemptNumber = v.pipe(v.string(), v.toNumber(), Sequence);
const AttemptLogs = v.strictObject({ segments: v.array(LogSegment) });

/** Logs as text by offset, and as bytes. */
export const logRoutes = (services: WorkerServices): Operation[] => {
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
    operation({
      method: "get",
      path: "/jobs/:id/logs/:stream/content",
      id: "readLogContent",
      summary: "The log's bytes; with follow=true they go on until the job has ended",
      headers: { Range: "one byte range", "If-None-Match": "entity tag" },
      query: ContentQuery,
      answer: { kind: "bytes", status: [200, 206, 304] },
      errors: ["job_not_found", "log_stream_invalid", "range_not_satisfiable"],
      handler: async ({ c, param, query }) => {
        const jobId = param("id");
        const stream = logStream(param("stream"));
        await store.job(jobId);
        const { size_bytes: size, complete } = await logs.state(jobId, stream);
        const offset = query.tail === undefined ? (query.offset ?? 0) : Math.max(0, size - query.tail);
        const signal = AbortSignal.any([c.req.raw.signal, services.draining]);
        const headers = { "content-type": "application/octet-stream", "clio-relay-log-offset": String(offset) };
        // HEAD asks for the headers only: nothing is opened for it.
        const bytes = (range: { offset: number; end: number | null }): ReadableStream<Uint8Array> | null =>
          c.req.raw.method === "HEAD" ? null : streamOf(logs.bytes(jobId, stream, range, signal));
        if (query.follow) return new Response(bytes({ offset, end: null }), { headers });
        const etag = complete ? `"${jobId}-${stream}-${size}"` : null;
        if (etag !== null && matchesEtag(c.req.header("if-none-match"), etag))
          return new Response(null, { status: 304, headers: { etag } });
        const asked = parseRange(c.req.header("range"), size);
        const range = asked ?? (offset > 0 ? { start: Math.min(offset, size), end: size } : null);
        const part = range ?? { start: 0, end: size };
        return new Response(bytes({ offset: part.start, end: part.end }), {
          status: asked === null ? 200 : 206,
          headers: { ...headers, ...contentHeaders(size, asked, etag), "content-length": String(part.end - part.start) },
        });
      },
    }),
  ];
};

function logStream(name: string): LogStream {
  const result = v.safeParse(LogStream, name);
  if (!result.success)
    throw new RelayError("log_stream_invalid", `there is no stream ${JSON.stringify(name.slice(0, 64))}`, { streams: LOG_STREAMS });
  return result.output;
}

/** A body that pulls from an iterator, so that a slow reader holds the source back. */
function streamOf(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
