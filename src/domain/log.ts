import * as v from "valibot";
import { ByteCount, Id, Sequence } from "./primitives.ts";

export const LOG_STREAMS = ["stdout", "stderr"] as const;
export const LogStream = v.picklist(LOG_STREAMS);
export type LogStream = v.InferOutput<typeof LogStream>;

/** Accounting of one output stream of one attempt: observed = kept + dropped, all in bytes. */
export const StreamCapture = v.strictObject({
  observed: ByteCount,
  kept: ByteCount,
  dropped: ByteCount,
  /** Why bytes were dropped; null when none were. */
  truncated: v.nullable(v.picklist(["stream_quota", "job_quota", "disk_full"])),
  /** False when the shim was killed: bytes that it had not written yet are lost and were not counted. */
  complete: v.boolean(),
});
export type StreamCapture = v.InferOutput<typeof StreamCapture>;

/**
 * Where an attempt's output stands in the job's log. A job's log of a stream is the concatenation of its
 * attempts' output, so that byte offsets never restart.
 */
export const LogSegment = v.strictObject({
  job_id: Id,
  attempt: Sequence,
  stream: LogStream,
  /** Offset of the segment's first byte in the job's log. */
  base: ByteCount,
  /** Bytes of the segment for which events were written; grows while the attempt runs. */
  length: ByteCount,
  /** Set when the attempt ended. */
  capture: v.nullable(StreamCapture),
});
export type LogSegment = v.InferOutput<typeof LogSegment>;

/** A piece of a log as text; offsets are bytes, the cut never splits a UTF-8 sequence. */
export const LogChunk = v.strictObject({
  job_id: Id,
  stream: LogStream,
  offset: ByteCount,
  next_offset: ByteCount,
  /** True when the job has ended and nothing follows next_offset. */
  eof: v.boolean(),
  /** Bytes that are not UTF-8 appear as U+FFFD; the raw route gives the bytes. */
  text: v.string(),
  /** Bytes of [offset, next_offset) that were recorded and are no longer there: 0, or all of them, and then `text` is empty. */
  missing_bytes: ByteCount,
});
export type LogChunk = v.InferOutput<typeof LogChunk>;
