import fs from "node:fs";
import path from "node:path";
import type { EmitLine } from "../domain/emit-line.ts";
import { LIMITS } from "../domain/limits.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import { type FirstEntries, firstEntries } from "../lib/files/first-entries.ts";
import { parseEmitLine, tooLong } from "./emit-line.ts";

/** Lines of one event file from `offset` up to `next_offset`, both in bytes and both at the start of a line. */
export interface EmitBatch {
  readonly file: string;
  readonly offset: number;
  readonly next_offset: number;
  readonly lines: readonly EmitLine[];
}

export interface EmitFiles {
  readonly batches: readonly EmitBatch[];
  /** True when a bound was reached and another call with the new offsets, and the same memory, brings more; even where this one brought nothing. */
  readonly more: boolean;
  /** Files beyond LIMITS.emitFiles; they are not read. Where not all names were looked at, those that were not count as one. */
  readonly ignored: number;
}

/**
 * How far the search for the end of an overlong line has come, by file, so that looking again is cheap. Belongs to one attempt's
 * directory; losing it costs time only.
 */
export type EmitMemory = Map<string, number>;

/** One call reads at most about this much, so that a job that floods its files cannot make a commit large. */
const CALL_MAX_LINES = 500;
const CALL_MAX_BYTES = 1024 * 1024;
/** The search for the ends of overlong lines, which keeps nothing of what it reads, has a bound of its own for one call. */
const CALL_MAX_SEARCH_BYTES = 16 * 1024 * 1024;
/** Names that one call looks at, those of files that it does not read included. */
const CALL_MAX_NAMES = 2 * LIMITS.emitFiles;

/** What is left for one call. */
interface Budget {
  lines: number;
  bytes: number;
  search: number;
}

const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,249}\.jsonl$/;

/**
 * Complete lines that a job's event files have gained.
 *
 * @param directory the attempt's events directory; missing counts as empty
 * @param offsets where each file was read up to; a file that is not named is read from its start
 */
export function readEmitFiles(directory: string, offsets: ReadonlyMap<string, number>, memory: EmitMemory = new Map()): EmitFiles {
  const { files, ignored } = list(directory, offsets);
  const batches: EmitBatch[] = [];
  const budget: Budget = { lines: CALL_MAX_LINES, bytes: CALL_MAX_BYTES, search: CALL_MAX_SEARCH_BYTES };
  let more = false;
  for (const file of files) {
    if (budget.lines <= 0 || budget.bytes <= 0) {
      more = true;
      break;
    }
    const fd = openRegular(path.join(directory, file));
    if (fd === null) continue;
    try {
      const reader = new LineReader(fd, file, offsets.get(file) ?? 0, memory);
      more = reader.read(budget) || more;
      if (reader.position > reader.offset) {
        batches.push({ file, offset: reader.offset, next_offset: reader.position, lines: reader.lines });
      }
    } finally {
      fs.closeSync(fd);
    }
  }
  return { batches, more, ignored };
}

/** Complete lines that one file has gained, read in another way than reports are. */
export interface Lines {
  readonly batch: EmitBatch | null;
  /** See EmitFiles. */
  readonly more: boolean;
}

/**
 * The same of a file that is open.
 *
 * @param source what it is called in the batch, and in the memory
 * @param parse what a line without its newline says; null for nothing
 */
export function readLines(
  fd: number,
  source: string,
  offset: number,
  memory: EmitMemory,
  parse: (line: Uint8Array) => EmitLine | null,
): Lines {
  const budget: Budget = { lines: CALL_MAX_LINES, bytes: CALL_MAX_BYTES, search: CALL_MAX_SEARCH_BYTES };
  const reader = new LineReader(fd, source, offset, memory, parse);
  const more = reader.read(budget);
  const { lines, position } = reader;
  return { batch: position > offset ? { file: source, offset, next_offset: position, lines } : null, more };
}

function list(directory: string, offsets: ReadonlyMap<string, number>): { files: string[]; ignored: number } {
  let looked: FirstEntries;
  try {
    looked = firstEntries(directory, CALL_MAX_NAMES);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return { files: [], ignored: 0 };
    throw error;
  }
  // Files that were read before come first, and need not be among the names looked at: a newcomer never pushes one out.
  const known = [...offsets.keys()].filter((name) => FILE_NAME.test(name) && fs.existsSync(path.join(directory, name))).sort();
  const fresh = looked.names.filter((name) => FILE_NAME.test(name) && !offsets.has(name)).sort();
  const all = [...known, ...fresh];
  return { files: all.slice(0, LIMITS.emitFiles), ignored: Math.max(0, all.length - LIMITS.emitFiles) + (looked.more ? 1 : 0) };
}

/** Open a regular file of the job, never following a link and never waiting for the other end of a pipe. */
function openRegular(file: string): number | null {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ELOOP", "EACCES", "ENXIO", "EISDIR")) return null;
    throw error;
  }
  if (fs.fstatSync(fd).isFile()) return fd;
  fs.closeSync(fd);
  return null;
}

const NEWLINE = 10;
const SEARCH_CHUNK = 64 * 1024;

class LineReader {
  readonly lines: EmitLine[] = [];
  position: number;
  readonly #size: number;

  constructor(
    private readonly fd: number,
    private readonly file: string,
    readonly offset: number,
    private readonly memory: EmitMemory,
    private readonly parse: (line: Uint8Array) => EmitLine | null = parseEmitLine,
  ) {
    this.position = offset;
    this.#size = fs.fstatSync(fd).size;
  }

  /** Read until the file or the budget is used up. True when the budget was. */
  read(budget: Budget): boolean {
    while (this.position < this.#size) {
      if (budget.lines <= 0 || budget.bytes <= 0) return true;
      const start = this.position;
      const went = this.#readWindow(budget);
      if (went !== "on") return went === "budget";
      budget.bytes -= this.position - start;
    }
    return false;
  }

  /** Take the complete lines of the next window. "end" when the rest is an incomplete line, "budget" when its end was not found within that. */
  #readWindow(budget: Budget): "on" | "end" | "budget" {
    const window = Buffer.allocUnsafe(Math.min(this.#size - this.position, LIMITS.emitLineBytes + 1));
    const count = fs.readSync(this.fd, window, 0, window.length, this.position);
    let start = 0;
    for (let end = window.indexOf(NEWLINE); end !== -1 && end < count; end = window.indexOf(NEWLINE, start)) {
      if (budget.lines <= 0) return "on";
      this.#take(this.parse(window.subarray(start, end)), budget);
      this.position += end + 1 - start;
      start = end + 1;
    }
    if (start > 0) return "on";
    if (count <= LIMITS.emitLineBytes) return "end";
    const end = this.#searchNewline(this.position + count, budget);
    if (typeof end === "string") return end;
    this.#take(tooLong(), budget);
    this.position = end + 1;
    return "on";
  }

  #take(line: EmitLine | null, budget: Budget): void {
    if (line === null) return;
    this.lines.push(line);
    budget.lines--;
  }

  #searchNewline(from: number, budget: Budget): number | "end" | "budget" {
    const chunk = Buffer.allocUnsafe(SEARCH_CHUNK);
    let at = Math.max(from, this.memory.get(this.file) ?? 0);
    while (budget.search > 0) {
      const count = fs.readSync(this.fd, chunk, 0, chunk.length, at);
      if (count === 0) {
        this.memory.set(this.file, at);
        return "end";
      }
      budget.search -= count;
      const found = chunk.subarray(0, count).indexOf(NEWLINE);
      if (found !== -1) {
        this.memory.delete(this.file);
        return at + found;
      }
      at += count;
    }
    this.memory.set(this.file, at);
    return "budget";
  }
}
