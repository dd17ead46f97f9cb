import type { ClusterClient } from "../../api/client.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { LogStream } from "../../domain/log.ts";
import { CLUSTER } from "../cluster-option.ts";
import { interruptible } from "../follow/interrupt.ts";
import { followLog } from "../follow/log-bytes.ts";
import { isOutage, Reconnect } from "../follow/reconnect.ts";
import type { CliIo } from "../io.ts";
import { LOG_STREAMS } from "../job-words.ts";
import { bytesText } from "../print/quantities.ts";
import { jsonText, SafeStream } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { byteCount, jobId, oneOf } from "../values.ts";
import { defineVerb, option, optionOr, toggle } from "../verb.ts";

export const verb = defineVerb({
  summary: "Print what a job wrote",
  details:
    "Offsets and sizes are bytes. On a terminal, control characters are shown and not obeyed, and a lone carriage return ends a line; elsewhere, and with --raw, the bytes come as " +
    "the job wrote them. With --json one piece of the log is printed with the offset of the next one; with --json --follow one piece a line.",
  positionals: { job: jobId },
  flags: {
    cluster: CLUSTER,
    stream: optionOr(oneOf(...LOG_STREAMS), "stdout" as const, "Which output"),
    follow: toggle("Go on until the job has ended", "f"),
    raw: toggle("Bytes only, on a terminal too"),
    offset: option(byteCount, "Begin at this byte"),
    tail: option(byteCount, "Begin this many bytes before the end"),
    limit: option(byteCount, "Print at most this many bytes"),
  },
  examples: [
    ["job read-log job_0123456789abcdef0123456789abcdef", "all of standard output"],
    ["job read-log job_0123456789abcdef0123456789abcdef -f --stream stderr --tail 4KiB", "the end of standard error, and what follows"],
    ["job read-log job_0123456789abcdef0123456789abcdef --offset 65536 --limit 4096 --json", "one piece, with the offset of the next"],
  ],
  async run({ flags, args, io, json, relay }) {
    if (flags.offset !== undefined && flags.tail !== undefined) throw new RelayError("usage", "--offset and --tail exclude each other");
    if (flags.limit === 0) throw new RelayError("usage", "--limit must be at least 1");
    if (flags.follow && flags.limit !== undefined) throw new RelayError("usage", "--follow and --limit exclude each other");
    const cluster = await relay.cluster(flags.cluster);
    if (json && !flags.follow) {
      const limit = flags.limit ?? LIMITS.logReadDefaultBytes;
      if (limit > LIMITS.logReadMaxBytes) throw new RelayError("usage", `with --json, --limit may be at most ${LIMITS.logReadMaxBytes}`);
      const offset = await beginning(cluster, args.job, flags, true);
      await printJson(io.stdout, await cluster.log(args.job, flags.stream, { offset, limit }));
      return EXIT.ok;
    }
    const write = writer(io, flags.raw || !io.stdout.isTerminal);
    return interruptible(
      io,
      () => null,
      async (signal) => {
        if (!flags.follow) {
          await readOnce(cluster, args.job, flags, write, signal);
          await write.end();
          await noteDropped(io, cluster, args.job, flags.stream);
          return EXIT.ok;
        }
        const start = await beginning(cluster, args.job, flags, json);
        const reconnect = new Reconnect(io.stderr, signal);
        if (json) await followPieces(io, cluster, args.job, flags.stream, start, reconnect, signal);
        else for await (const bytes of followLog(cluster, args.job, flags.stream, start, reconnect, signal)) await write.bytes(bytes);
        await write.end();
        return EXIT.ok;
      },
    );
  },
});

interface Range {
  readonly stream: LogStream;
  readonly offset: number | undefined;
  readonly tail: number | undefined;
  readonly limit: number | undefined;
}

interface Writer {
  bytes(bytes: Uint8Array): Promise<void>;
  end(): Promise<void>;
}

function writer(io: CliIo, raw: boolean): Writer {
  if (raw) return { bytes: (bytes) => io.stdout.write(bytes), end: () => Promise.resolve() };
  const decoder = new TextDecoder();
  const safe = new SafeStream();
  return {
    bytes: (bytes) => io.stdout.write(safe.push(decoder.decode(bytes, { stream: true }))),
    end: () => io.stdout.write(safe.push(decoder.decode()) + safe.end()),
  };
}

/**
 * Where reading begins, as a byte offset: the end moves while one looks. Also finds out whether the job can be reached at all.
 *
 * @param text whether what follows is decoded piece by piece, so that it is not to begin within a character
 */
async function beginning(cluster: ClusterClient, jobId: string, { stream, offset, tail }: Range, text: boolean): Promise<number> {
  if (tail === undefined) {
    await cluster.job(jobId);
    return offset ?? 0;
  }
  const size = (await cluster.status(jobId)).logs.find((log) => log.stream === stream)?.size_bytes ?? 0;
  const start = Math.max(0, size - tail);
  return text && start > 0 && start < size ? start + (await continuation(cluster, jobId, stream, start)) : start;
}

/** How many bytes at an offset end a UTF-8 sequence that began before it (RFC 3629: at most three). */
async function continuation(cluster: ClusterClient, jobId: string, stream: LogStream, offset: number): Promise<number> {
  const { body } = await cluster.logContent(jobId, stream, { offset });
  if (body === null) return 0;
  for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
    const at = bytes.findIndex((byte) => (byte & 0xc0) !== 0x80);
    // More of them in a row are no UTF-8.
    return at < 0 ? (bytes.length > 3 ? 0 : bytes.length) : at > 3 ? 0 : at;
  }
  return 0;
}

async function readOnce(cluster: ClusterClient, jobId: string, range: Range, write: Writer, signal: AbortSignal): Promise<void> {
  const at = range.tail === undefined ? { offset: range.offset ?? 0 } : { tail: range.tail };
  const { body } = await cluster.logContent(jobId, range.stream, { ...at, signal });
  if (body === null) return;
  let left = range.limit ?? Number.POSITIVE_INFINITY;
  try {
    for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
      await write.bytes(bytes.length > left ? bytes.subarray(0, left) : bytes);
      left -= bytes.length;
      if (left <= 0) break;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RelayError) && isOutage(error))
      throw new RelayError("link_down", "the log broke off", { job_id: jobId }, undefined, { cause: error });
    throw error;
  }
}

/** Pieces as JSON lines until the job has ended. The connection that waits for bytes only says when to look. */
async function followPieces(
  io: CliIo,
  cluster: ClusterClient,
  jobId: string,
  stream: LogStream,
  start: number,
  reconnect: Reconnect,
  signal: AbortSignal,
): Promise<void> {
  let offset = start;
  /** Print what is there. True when that was the end. */
  const drain = async (): Promise<boolean> => {
    for (;;) {
      const chunk = await reconnect.persist(() => cluster.log(jobId, stream, { offset }));
      if (chunk.next_offset === offset && !chunk.eof) return false;
      await io.stdout.write(`${jsonText(chunk)}\n`);
      offset = chunk.next_offset;
      if (chunk.eof) return true;
    }
  };
  for await (const _bytes of followLog(cluster, jobId, stream, start, reconnect, signal)) if (await drain()) return;
  await drain();
}

/** A log that was cut by a bound says so where people look; its bytes do not. */
async function noteDropped(io: CliIo, cluster: ClusterClient, jobId: string, stream: LogStream): Promise<void> {
  const capture = (await cluster.status(jobId)).logs.find((log) => log.stream === stream)?.capture;
  if (capture == null || capture.dropped === 0) return;
  await io.stderr.write(`notice: ${bytesText(capture.dropped)} of ${stream} were dropped (${capture.truncated})\n`);
}
