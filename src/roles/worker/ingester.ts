import fs from "node:fs";
import path from "node:path";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS, type LogStream } from "../../domain/log.ts";
import { eventsDirectory, readTruncation } from "../../execution/attempt-dir.ts";
import { type EmitMemory, readEmitFiles } from "../../execution/emit-files.ts";
import { logFile } from "../../execution/spool-records.ts";
import { isErrno } from "../../lib/atomic-file.ts";
import { completeUtf8Length } from "../../lib/utf8.ts";
import type { Fence, Ingest, QueueStore } from "../../queue/store.ts";

/** Deltas up to this size carry their bytes as text. */
const TEXT_MAX_BYTES = 4_096;

/**
 * Turns what an attempt's files have gained into events, progress and task events. Positions are committed together
 * with the records made of the bytes, so that nothing is missed or doubled whenever the worker dies.
 */
export class Ingester {
  readonly #lengths: Record<LogStream, number> = { stdout: 0, stderr: 0 };
  /** Streams whose truncation was handed to the store, which records it once however often it is told. */
  readonly #truncated = new Set<LogStream>();
  #emitOffsets: Map<string, number> = new Map();
  readonly #emitMemory: EmitMemory = new Map();
  #loaded = false;

  constructor(
    private readonly store: QueueStore,
    private readonly fence: Fence,
    private readonly directory: string,
  ) {}

  /**
   * Ingest a bounded piece of what is there now.
   *
   * @param final the attempt has ended: bytes of an incomplete UTF-8 sequence are no longer waited for
   * @returns whether there is more
   */
  async ingest(final: boolean): Promise<boolean> {
    await this.#load();
    const { batches, more } = this.#reports();
    const deltas = LOG_STREAMS.flatMap((stream) => this.#delta(stream, final));
    const truncations = LOG_STREAMS.filter((stream) => !this.#truncated.has(stream)).flatMap((stream) => {
      const record = readTruncation(this.directory, stream);
      return record === null ? [] : [{ stream, capture: record.capture }];
    });
    if (deltas.length + truncations.length + batches.length === 0) return more;
    try {
      await this.store.ingest(this.fence, { deltas, truncations, emits: batches });
    } catch (error) {
      // Whatever the reason, the store knows best how far it came.
      this.#loaded = false;
      throw error;
    }
    for (const { stream, bytes } of deltas) this.#lengths[stream] += bytes;
    for (const { stream } of truncations) this.#truncated.add(stream);
    for (const { file, next_offset } of batches) this.#emitOffsets.set(file, next_offset);
    return more;
  }

  /** What the job's event files have gained, up to the bound of an attempt; the batch that reaches it says so. */
  #reports(): { batches: Ingest["emits"]; more: boolean } {
    const before = this.#reportedBytes();
    if (before >= LIMITS.emitBytes) return { batches: [], more: false };
    const { batches, more } = readEmitFiles(eventsDirectory(this.directory), this.#emitOffsets, this.#emitMemory);
    const gained = batches.reduce((sum, { offset, next_offset }) => sum + next_offset - offset, 0);
    const last = batches.at(-1);
    if (last === undefined || before + gained < LIMITS.emitBytes) return { batches, more };
    const reason = `the job's reports have reached ${LIMITS.emitBytes} bytes; the rest is not read`;
    return { batches: [...batches.slice(0, -1), { ...last, lines: [...last.lines, { type: "refused", reason }] }], more: false };
  }

  #reportedBytes(): number {
    let bytes = 0;
    for (const offset of this.#emitOffsets.values()) bytes += offset;
    return bytes;
  }

  /** Positions come from the store once, and again after a failed commit. */
  async #load(): Promise<void> {
    if (this.#loaded) return;
    for (const segment of await this.store.segments(this.fence.job_id)) {
      if (segment.attempt !== this.fence.attempt) continue;
      this.#lengths[segment.stream] = segment.length;
    }
    this.#emitOffsets = new Map(await this.store.emitOffsets(this.fence));
    this.#loaded = true;
  }

  #delta(stream: LogStream, final: boolean): Ingest["deltas"] {
    const offset = this.#lengths[stream];
    let fd: number;
    try {
      fd = fs.openSync(path.join(this.directory, logFile(stream)), "r");
    } catch (error) {
      if (isErrno(error, "ENOENT")) return [];
      throw error;
    }
    try {
      const gained = fs.fstatSync(fd).size - offset;
      if (gained <= 0) return [];
      const tail = Buffer.alloc(Math.min(gained, TEXT_MAX_BYTES));
      const read = fs.readSync(fd, tail, 0, tail.length, offset + gained - tail.length);
      const whole = final ? read : completeUtf8Length(tail.subarray(0, read));
      const bytes = gained - tail.length + whole;
      if (bytes <= 0) return [];
      return [{ stream, bytes, text: gained <= TEXT_MAX_BYTES ? decode(tail.subarray(0, whole)) : null }];
    } finally {
      fs.closeSync(fd);
    }
  }
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): string | null {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}
