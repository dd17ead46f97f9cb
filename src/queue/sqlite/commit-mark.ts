import type { Database, Statement } from "bun:sqlite";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { openRegular, readRegular } from "../../lib/files/regular-file.ts";
import { whatIs } from "../queue-files.ts";
import { FRAME_HEADER_BYTES, frameOffset, readLog, saltsOfFrame } from "./write-ahead-log.ts";

/** Name of the mark beside the queue's file. It is not called queue.db-…, so that whoever removes those files leaves it. */
export const MARK_FILE = "committed.json";

/** The record always has this length, and lies within one sector: it is written over in place, and never torn. */
const MARK_BYTES = 256;

/** How far the write-ahead log reached when the last commit was done. */
const Mark = v.object({
  record_version: v.literal(1),
  /** Whether the database is open. When it is closed, its log is gone as it should be. */
  open: v.boolean(),
  /** Frames that the log had then. */
  frames: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  /** Header of the last of them, in hexadecimal; null when there was none. */
  last_frame: v.nullable(v.pipe(v.string(), v.regex(/^[0-9a-f]{48}$/))),
});
export type Mark = v.InferOutput<typeof Mark>;

/** The mark of a queue; `unreadable` when something else has its name. */
export function readMark(directory: string): Mark | "absent" | "unreadable" {
  const found = readRegular(path.join(directory, MARK_FILE), MARK_BYTES);
  if (found === "absent") return "absent";
  if (typeof found === "string") return "unreadable";
  try {
    const read = v.safeParse(Mark, JSON.parse(found.text));
    return read.success ? read.output : "unreadable";
  } catch {
    return "unreadable";
  }
}

/**
 * The mark of an open database. It is moved on with each commit (see Committer for when), without a flush: what the system has been given outlives
 * the process, and an older mark, after a loss of power or a kill right behind an answer, still names frames that were flushed before it was written.
 */
export class CommitMark {
  readonly #mark: number;
  readonly #log: number;
  readonly #file: string;
  readonly #length: Statement<{ log: number }, []>;
  readonly #pageSize: number;
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);

  /** @param file of the database, which is open in this process and in write-ahead mode, and has been read from */
  constructor(database: Database, file: string) {
    this.#file = path.join(path.dirname(file), MARK_FILE);
    // NOOP looks and does nothing: sqlite.org/pragma.html#pragma_wal_checkpoint.
    this.#length = database.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.#pageSize = database.query<{ page_size: number }, []>("PRAGMA page_size").get()!.page_size;
    this.#log = fs.openSync(`${file}-wal`, fs.constants.O_RDONLY);
    try {
      const begin = this.#now();
      if (typeof readMark(path.dirname(file)) === "string") writeFileAtomic(this.#file, begin);
      this.#mark = fs.openSync(this.#file, "r+");
      this.#write(begin);
      fs.fsyncSync(this.#mark);
    } catch (error) {
      fs.closeSync(this.#log);
      this.#length.finalize();
      throw error;
    }
  }

  /** Commits are done. */
  advance(): void {
    try {
      this.#write(this.#now());
    } catch {
      // The commit counts all the same; a mark that stays behind asks for less.
    }
  }

  /** The database is about to be closed, and its log with it. */
  close(): void {
    try {
      this.#write(recordOf({ record_version: 1, open: false, frames: 0, last_frame: null }));
      fs.fsyncSync(this.#mark);
    } catch {
      // One that still asks for the log would refuse the queue; none asks for nothing.
      fs.rmSync(this.#file, { force: true });
    } finally {
      this.#length.finalize();
      fs.closeSync(this.#mark);
      fs.closeSync(this.#log);
    }
  }

  #now(): string {
    const frames = this.#length.get()?.log ?? 0;
    if (frames <= 0) return recordOf({ record_version: 1, open: true, frames: 0, last_frame: null });
    const count = fs.readSync(this.#log, this.#header, 0, FRAME_HEADER_BYTES, frameOffset(frames, this.#pageSize));
    if (count < FRAME_HEADER_BYTES) throw new Error(`the log has no frame ${frames}`);
    return recordOf({ record_version: 1, open: true, frames, last_frame: this.#header.toString("hex") });
  }

  #write(record: string): void {
    fs.writeSync(this.#mark, record, 0, "utf8");
  }
}

const recordOf = (mark: Mark): string => `${JSON.stringify(mark).padEnd(MARK_BYTES - 1)}\n`;

/** Runs through the log that may lie between a mark and what the system had been given when it lost power. */
const RUNS_AHEAD = 65_536;

/**
 * What of a log is gone, as words that follow its name; null when everything is there that the mark tells of. Frames after these are
 * not asked for. Without a mark, or after an end in order, a log is asked to be a regular file, or not there.
 */
export function lackOf(log: string, mark: Mark | null): string | null {
  const opened = openRegular(log);
  if (opened === "not_a_file") return `is ${whatIs(log)}, and not a regular file`;
  const last = mark?.open === true ? mark.last_frame : null;
  if (opened === "absent") return last === null ? null : "is gone";
  try {
    return mark === null || last === null ? null : lack(opened.fd, mark.frames, Buffer.from(last, "hex"));
  } finally {
    fs.closeSync(opened.fd);
  }
}

function lack(fd: number, frames: number, last: Buffer): string | null {
  const read = readLog(fd, frames);
  if (typeof read === "string") return read;
  const marked = saltsOfFrame(last);
  const ahead = (read.salts.first - marked.first) >>> 0;
  // Begun anew, which SQLite does when everything in it has been copied to the database and flushed.
  if (ahead > 0 && ahead <= RUNS_AHEAD) return null;
  if (ahead > 0 || read.salts.second !== marked.second) return "is another one";
  return read.broken ?? (read.last?.equals(last) === true ? null : `is another one from frame ${frames} on`);
}
