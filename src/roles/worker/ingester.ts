import fs from "node:fs";
import path from "node:path";
import type { NewEvent } from "../../domain/event.ts";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS, type LogStream } from "../../domain/log.ts";
import { readTruncation } from "../../execution/attempt-dir.ts";
import { type EmitMemory, readEmitFiles } from "../../execution/emit-files.ts";
import { ofAttemptFile, reportsIn } from "../../execution/own-place.ts";
import { logFile } from "../../execution/spool-records.ts";
import { openRegular } from "../../lib/files/regular-file.ts";
import { completeUtf8Length } from "../../lib/text/utf8.ts";
import type { Fence, Ingest, Notice, QueueStore } from "../../queue/store.ts";
import { messageOf, type Patience } from "./patience.ts";
import { damage } from "./spool-damage.ts";

interface Reports {
  readonly batches: Ingest["emits"];
  readonly more: boolean;
}

const NO_REPORTS: Reports = { batches: [], more: false };

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
  /** By what they are about. */
  readonly #notices = new Map<string, Notice | "told">();
  #loaded = false;

  constructor(
    private readonly store: QueueStore,
    private readonly fence: Fence,
    private readonly directory: string,
    private readonly patience: Patience,
    /** Done before anything is committed: what files hold is younger than the attempt's start, and its records come after. */
    private readonly first: () => Promise<void>,
  ) {}

  /**
   * Ingest a bounded piece of what is there now.
   *
   * @param final the attempt has ended: bytes of an incomplete UTF-8 sequence are no longer waited for
   * @returns whether there is more
   */
  async ingest(final: boolean): Promise<boolean> {
    await this.#load();
    const { batches, more } = await this.#tolerant("events", () => this.#reports(), NO_REPORTS);
    const deltas: Ingest["deltas"][number][] = [];
    for (const stream of LOG_STREAMS) deltas.push(...(await this.#tolerant(logFile(stream), () => this.#delta(stream, final), [])));
    const truncations = LOG_STREAMS.filter((stream) => !this.#truncated.has(stream)).flatMap((stream) => {
      const record = readTruncation(this.directory, stream);
      return record === null ? [] : [{ stream, capture: record.capture }];
    });
    const notices = [...this.#notices.values()].filter((notice) => notice !== "told");
    if (deltas.length + truncations.length + batches.length + notices.length === 0) return more;
    await this.first();
    try {
      await this.store.ingest(this.fence, { deltas, truncations, emits: batches, notices });
    } catch (error) {
      // Whatever the reason, the store knows best how far it came.
      this.#loaded = false;
      throw error;
    }
    for (const { stream, bytes } of deltas) this.#lengths[stream] += bytes;
    for (const { stream } of truncations) this.#truncated.add(stream);
    for (const { file, next_offset } of batches) this.#emitOffsets.set(file, next_offset);
    for (const { about } of notices) this.#notices.set(about, "told");
    return more;
  }

  /** What cannot be read keeps nothing else from being read, once it has used up its tries. */
  #tolerant<T>(about: string, read: () => T, nothing: T): Promise<T> {
    return this.patience.run(`read ${about}`, read, (cause) => {
      this.#notice(damage(about, `${about} cannot be read, and is passed over: ${messageOf(cause)}`));
      return nothing;
    });
  }

  #notice(notice: Notice): void {
    if (!this.#notices.has(notice.about)) this.#notices.set(notice.about, notice);
  }

  /** What the job's event files have gained, up to the bound of an attempt; the batch that reaches it says so. */
  #reports(): Reports {
    const before = this.#reportedBytes();
    if (before >= LIMITS.emitBytes) return NO_REPORTS;
    const { batches, more, ignored } = reportsIn(this.directory, (place) => readEmitFiles(place, this.#emitOffsets, this.#emitMemory), {
      batches: [],
      more: false,
      ignored: 0,
    });
    if (ignored > 0) this.#notice({ about: "files", event: filesIgnored() });
    const gained = batches.reduce((sum, { offset, next_offset }) => sum + next_offset - offset, 0);
    const last = batches.at(-1);
    if (last === undefined || before + gained < LIMITS.emitBytes) return { batches, more };
    const reason = `the job's reports have reached ${LIMITS.emitBytes} bytes; the rest is not read`;
    return { batches: [...batches.slice(0, -1), { ...last, lines: [...last.lines, { type: "refused", reason }] }], more: false };
  }

  #reportedBytes(): number {
    let bytes = 0;
    // Sources that are no files of reports have a colon in their name, and bounds of their own.
    for (const [file, offset] of this.#emitOffsets) if (!file.includes(":")) bytes += offset;
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
    const opened = ofAttemptFile(path.join(this.directory, logFile(stream)), openRegular, "absent" as const);
    if (opened === "absent") return [];
    if (opened === "not_a_file") {
      this.#notice(damage(logFile(stream), `${logFile(stream)} was replaced by something that is not a regular file, and is not read.`));
      return [];
    }
    const { fd, size } = opened;
    try {
      const gained = size - offset;
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

function filesIgnored(): NewEvent {
  const reason = `there are more than ${LIMITS.emitFiles} files of reports; those beyond that number are not read`;
  return { event_type: "emit.refused", level: "warning", message: reason, payload: { file: "*", reason } };
}
