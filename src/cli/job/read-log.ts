import type { ClusterClient } from "../../api/client.ts";
import { EXIT, isRelayError, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { LogChunk, LogStream } from "../../domain/log.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { bodyBytes } from "../follow/body-bytes.ts";
import { interruptible } from "../follow/interrupt.ts";
import { withLifeSigns } from "../follow/life-signs.ts";
import { followLog } from "../follow/log-bytes.ts";
import { type Extent, extentOf, type LogPart } from "../follow/log-extent.ts";
import { logPieces } from "../follow/log-pieces.ts";
import { Reconnect } from "../follow/reconnect.ts";
import { logsOf, noteOther } from "../follow/written-elsewhere.ts";
import type { CliIo, Output } from "../io.ts";
import { LOG_STREAMS } from "../job-words.ts";
import { bytesText } from "../print/quantities.ts";
import { jsonText, SafeStream } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { byteCount, jobId, oneOf, whole } from "../values.ts";
import { defineVerb, option, optionOr, toggle } from "../verb.ts";

const LINES_MAX = 1_000_000;

export const verb = defineVerb({
  summary: "Print what a job wrote",
  details:
    "Offsets and sizes are bytes. On a terminal, control characters are shown and not obeyed, and a lone carriage return ends a line; elsewhere, and with --raw, the bytes come as " +
    "the job wrote them. With --json one piece of the log is printed with the offset of the next one; with --json --follow one piece a line.\n\n" +
    "The log of a job that was tried several times is what each attempt wrote, one after the other; --attempt picks one of them.",
  positionals: { job: jobId },
  flags: {
    cluster: CLUSTER,
    stream: optionOr(oneOf(...LOG_STREAMS), "stdout" as const, "Which output"),
    follow: toggle("Go on until the job has ended", "f"),
    raw: toggle("Bytes only, on a terminal too"),
    attempt: option(whole(1, Number.MAX_SAFE_INTEGER), "Only what this attempt wrote"),
    offset: option(byteCount, "Begin at this byte of the job's log, of which an attempt's output is a part"),
    tail: option(byteCount, "Begin this many bytes before the end"),
    lines: option(whole(0, LINES_MAX), "Begin this many lines before the end", "n"),
    limit: option(byteCount, "Print at most this many bytes"),
  },
  examples: [
    ["job read-log job_0123456789abcdef0123456789abcdef", "all of standard output"],
    ["job read-log job_0123456789abcdef0123456789abcdef -f -n 20", "the last twenty lines, and what follows"],
    ["job read-log job_0123456789abcdef0123456789abcdef --attempt 1 --stream stderr", "what the first attempt said went wrong"],
    ["job read-log job_0123456789abcdef0123456789abcdef --offset 65536 --limit 4096 --json", "one piece, with the offset of the next"],
  ],
  async run({ flags, args, io, json, relay }) {
    refuseContradictions(flags);
    if (json && !flags.follow && (flags.limit ?? 0) > LIMITS.logReadMaxBytes)
      throw new RelayError("usage", `with --json, --limit may be at most ${LIMITS.logReadMaxBytes}`);
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    // What cannot be reached or found at all is said at once; only what once worked is waited for.
    if (flags.follow) await cluster.job(id);
    const extent = await extentOf(cluster, id, flags, json);
    if (json && !flags.follow) {
      await printJson(io.stdout, await onePiece(cluster, id, flags.stream, extent, flags.limit ?? LIMITS.logReadDefaultBytes));
      return EXIT.ok;
    }
    const write = writer(io, flags.raw || !io.stdout.isTerminal);
    await interruptible(
      io,
      () => null,
      async (signal) => {
        const reconnect = new Reconnect(write.notices, io.clock, signal);
        if (flags.follow) await reconnect.alive();
        await withLifeSigns(cluster, reconnect, async () => {
          const from = [cluster, id, flags.stream, extent.start, reconnect, signal] as const;
          const source = { cluster, jobId: id, stream: flags.stream, reconnect, signal };
          if (!flags.follow) await readOnce(source, within(extent, flags.limit), write);
          else if (json) for await (const chunk of logPieces(...from)) await io.stdout.write(`${jsonText(chunk)}\n`);
          else for await (const bytes of followLog(...from)) await write.bytes(bytes);
        });
        await write.end();
        if (!json) await noteLogs(io, cluster, id, flags);
      },
    );
    return EXIT.ok;
  },
});

function refuseContradictions(flags: LogPart & { readonly follow: boolean; readonly limit: number | undefined }): void {
  const given = (["offset", "tail", "lines"] as const).filter((name) => flags[name] !== undefined);
  if (given.length > 1) throw new RelayError("usage", `--${given[0]} and --${given[1]} exclude each other`);
  if (flags.limit === 0) throw new RelayError("usage", "--limit must be at least 1");
  for (const name of ["limit", "attempt"] as const)
    if (flags.follow && flags[name] !== undefined) throw new RelayError("usage", `--follow and --${name} exclude each other`);
}

interface Writer {
  bytes(bytes: Uint8Array): Promise<void>;
  end(): Promise<void>;
  /** Standard error for whatever is said meanwhile, on a line of its own where both are one terminal. */
  readonly notices: Pick<Output, "write">;
}

function writer(io: CliIo, raw: boolean): Writer {
  if (raw) return { bytes: (bytes) => io.stdout.write(bytes), end: () => Promise.resolve(), notices: io.stderr };
  const decoder = new TextDecoder();
  const safe = new SafeStream();
  let open = false;
  const show = async (text: string): Promise<void> => {
    if (text === "") return;
    await io.stdout.write(text);
    open = !text.endsWith("\n");
  };
  const endLine = (): Promise<void> => show(open ? "\n" : "");
  return {
    bytes: (bytes) => show(safe.push(decoder.decode(bytes, { stream: true }))),
    async end() {
      await show(safe.push(decoder.decode()) + safe.end());
      await endLine();
    },
    notices: {
      async write(data) {
        if (io.stderr.isTerminal) await endLine();
        await io.stderr.write(data);
      },
    },
  };
}

const within = ({ start, end }: Extent, limit: number | undefined): Extent => ({
  start,
  end: limit === undefined ? end : Math.min(end ?? Number.POSITIVE_INFINITY, start + limit),
});

/** One piece as the worker's route gives it, cut at the end of what is asked for. */
async function onePiece(cluster: ClusterClient, jobId: string, stream: LogStream, extent: Extent, limit: number): Promise<LogChunk> {
  const { start, end } = within(extent, limit);
  // An attempt that is over ends where its part of the log does, whatever follows.
  const over = (offset: number) => extent.end !== null && offset >= extent.end;
  if (end! > start) {
    const chunk = await cluster.log(jobId, stream, { offset: start, limit: end! - start });
    return { ...chunk, eof: chunk.eof || over(chunk.next_offset) };
  }
  const next = await cluster.log(jobId, stream, { offset: start, limit: 1 });
  return { ...next, next_offset: start, eof: over(start) || (next.eof && next.next_offset === start), text: "", missing_bytes: 0 };
}

interface Source {
  readonly cluster: ClusterClient;
  readonly jobId: string;
  readonly stream: LogStream;
  readonly reconnect: Reconnect;
  readonly signal: AbortSignal;
}

async function readOnce(source: Source, { start, end }: Extent, write: Writer): Promise<void> {
  const { cluster, jobId, stream, signal } = source;
  const at = { offset: start };
  try {
    const content = await cluster.logContent(jobId, stream, { ...at, signal });
    await copy(source, content, at, end ?? Number.POSITIVE_INFINITY, write);
  } catch (error) {
    signal.throwIfAborted();
    // An answer breaks off with the connection, and is refused where bytes are lost.
    if (!isRelayError(error, "link_down") && !isRelayError(error, "log_not_found")) throw error;
    await readAround(source, { start: at.offset, end }, write, error);
  }
}

/** Go on where an answer broke off. One that follows ends in order before bytes that are lost. */
async function readAround(source: Source, { start, end }: Extent, write: Writer, cause: unknown): Promise<void> {
  const { cluster, jobId, stream, reconnect, signal } = source;
  const size = (await cluster.status(jobId)).logs.find((log) => log.stream === stream)?.size_bytes ?? 0;
  const stop = Math.min(end ?? size, size);
  for (const at = { offset: start }; at.offset < stop; ) {
    const content = await cluster.logContent(jobId, stream, { ...at, follow: true, signal });
    await copy(source, content, at, stop, write);
    if (at.offset >= stop) return;
    const { missing_bytes, next_offset } = await cluster.log(jobId, stream, { ...at, limit: 1 });
    if (missing_bytes === 0) throw new RelayError("link_down", "the log broke off", { job_id: jobId }, undefined, { cause });
    await reconnect.passedOver(stream, at.offset, next_offset);
    at.offset = next_offset;
  }
}

/** Write a body's bytes up to an offset, and move `at` along with them. */
async function copy({ reconnect }: Source, content: Response, at: { offset: number }, stop: number, write: Writer): Promise<void> {
  for await (const bytes of bodyBytes(content)) {
    await reconnect.alive();
    const piece = bytes.subarray(0, stop - at.offset);
    await write.bytes(piece);
    at.offset += piece.length;
    if (at.offset >= stop) return;
  }
}

/** A log that was cut by a bound, or has nothing while the other one has something, says so where people look; its bytes do not. */
async function noteLogs(
  { stderr }: CliIo,
  cluster: ClusterClient,
  jobId: string,
  { stream, follow, raw }: { readonly stream: LogStream; readonly follow: boolean; readonly raw: boolean },
): Promise<void> {
  if (follow && raw) return;
  // What was followed to its end is complete, whether the worker can still be asked or not.
  const logs = follow ? await logsOf(cluster, jobId) : (await cluster.status(jobId)).logs;
  const capture = logs.find((log) => log.stream === stream)?.capture;
  if (!follow && capture != null && capture.dropped > 0)
    await stderr.write(`notice: ${bytesText(capture.dropped)} of ${stream} were dropped (${capture.truncated})\n`);
  if (!raw) await noteOther(stderr, cluster, { jobId, stream, logs });
}
