import fs from "node:fs";
import path from "node:path";
import { LIMITS } from "../domain/limits.ts";
import { isErrno } from "../lib/atomic-file.ts";
import { type EmitLine, parseEmitLine, tooLong } from "./emit-line.ts";

/** Lines of one event file from `offset` up to `next_offset`, both in bytes and both at the start of a line. */
export interface EmitBatch {
  readonly file: string;
  readonly offset: number;
  readonly next_offset: number;
  readonly lines: readonly EmitLine[];
}

export interface EmitFiles {
  readonly batches: readonly EmitBatch[];
  /** True when a bound was reached and another call with the new offsets brings more. */
  readonly more: boolean;
  /** Files beyond LIMITS.emitFiles; they are not read. */
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
  const budget = { lines: CALL_MAX_LINES, bytes: CALL_MAX_BYTES };
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

function list(directory: string, offsets: ReadonlyMap<string, number>): { files: string[]; ignored: number } {
  let names: string[];
  try {
    names = fs.readdirSync(directory);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return { files: [], ignored: 0 };
    throw error;
  }
  const valid = names.filter((name) => FILE_NAME.test(name)).sort();
  // Files that were read before come first: a newcomer never pushes one out.
  const known = valid.filter((name) => offsets.has(name));
  const fresh = valid.filter((name) => !offsets.has(name));
  const all = [...known, ...fresh];
  return { files: all.slice(0, LIMITS.emitFiles), ignored: Math.max(0, all.length - LIMITS.emitFiles) };
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
  ) {
    this.position = offset;
    this.#size = fs.fstatSync(fd).size;
  }

  /** Read until the file or the budget is used up. True when the budget was. */
  read(budget: { lines: number; bytes: number }): boolean {
    while (this.position < this.#size) {
      if (budget.lines <= 0 || budget.bytes <= 0) return true;
      const start = this.position;
      if (!this.#readWindow(budget)) return false;
      budget.bytes -= this.position - start;
    }
    return false;
  }

  /** Take the complete lines of the next window. False when the rest is an incomplete line. */
  #readWindow(budget: { lines: number }): boolean {
    const window = Buffer.allocUnsafe(Math.min(this.#size - this.position, LIMITS.emitLineBytes + 1));
    const count = fs.readSync(this.fd, window, 0, window.length, this.position);
    let start = 0;
    for (let end = window.indexOf(NEWLINE); end !== -1 && end < count; end = window.indexOf(NEWLINE, start)) {
      if (budget.lines <= 0) return true;
      this.#take(parseEmitLine(window.subarray(start, end)), budget);
      this.position += end + 1 - start;
      start = end + 1;
    }
    if (start > 0) return true;
    if (count <= LIMITS.emitLineBytes) return false;
    const end = this.#searchNewline(this.position + count);
    if (end === null) return false;
    this.#take(tooLong(), budget);
    this.position = end + 1;
    return true;
  }

  #take(line: EmitLine | null, budget: { lines: number }): void {
    if (line === null) return;
    this.lines.push(line);
    budget.lines--;
  }

  #searchNewline(from: number): number | null {
    const chunk = Buffer.allocUnsafe(SEARCH_CHUNK);
    let at = Math.max(from, this.memory.get(this.file) ?? 0);
    for (;;) {
      const count = fs.readSync(this.fd, chunk, 0, chunk.length, at);
      if (count === 0) {
        this.memory.set(this.file, at);
        return null;
      }
      const found = chunk.subarray(0, count).indexOf(NEWLINE);
      if (found !== -1) {
        this.memory.delete(this.file);
        return at + found;
      }
      at += count;
    }
  }
}
