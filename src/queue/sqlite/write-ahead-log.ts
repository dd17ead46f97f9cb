import fs from "node:fs";

/** Bytes before the first frame, and before the page of each (sqlite.org/fileformat2.html, section 4.1). */
const HEADER_BYTES = 32;
export const FRAME_HEADER_BYTES = 24;
/** Of a log whose checksums are made of little-endian words, which is what every machine writes that this program runs on. */
const MAGIC = 0x377f0682;
const VERSION = 3_007_000;
const CHUNK_BYTES = 1024 * 1024;

/** Two numbers that every frame of one run through the log has in common. SQLite adds one to the first each time it begins the log anew. */
export interface Salts {
  readonly first: number;
  readonly second: number;
}

/** Where the header of a frame lies; frames are counted from 1. */
export const frameOffset = (frame: number, pageSize: number): number => HEADER_BYTES + (frame - 1) * (FRAME_HEADER_BYTES + pageSize);

/** The salts in the header of a frame. */
export const saltsOfFrame = (header: Buffer): Salts => ({ first: header.readUInt32BE(8), second: header.readUInt32BE(12) });

/** What a log holds. `broken` says where and how the frames end before `frames` of them; null when they are all there. */
export interface LogReading {
  readonly salts: Salts;
  /** Header of frame number `frames`, where all frames up to it are whole. */
  readonly last: Buffer | null;
  readonly broken: string | null;
}

/**
 * Read a write-ahead log up to a frame, checking salts and checksums as SQLite does when it recovers (sqlite.org/fileformat2.html, 4.1 and 4.2).
 * Reads no more than that many frames.
 *
 * @param fd of the log
 * @returns a text where the header itself is of no use: what is wrong with it
 */
export function readLog(fd: number, frames: number): LogReading | string {
  const header = Buffer.alloc(HEADER_BYTES);
  const there = fs.readSync(fd, header, 0, HEADER_BYTES, 0);
  if (there === 0) return "is empty";
  if (there < HEADER_BYTES) return `ends in its header, after ${there} bytes`;
  const sum = new Checksum();
  sum.add(wordsOf(header, 0, 24));
  const pageSize = header.readUInt32BE(8);
  const sound = header.readUInt32BE(0) === MAGIC && header.readUInt32BE(4) === VERSION && isPageSize(pageSize) && sum.isAt(header, 24);
  if (!sound) return "has a damaged header";
  const salts = { first: header.readUInt32BE(16), second: header.readUInt32BE(20) };
  return { salts, ...readFrames(fd, frames, pageSize, salts, sum) };
}

const isPageSize = (bytes: number): boolean => bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;

function readFrames(fd: number, frames: number, pageSize: number, salts: Salts, sum: Checksum): Omit<LogReading, "salts"> {
  const frameBytes = FRAME_HEADER_BYTES + pageSize;
  const atOnce = Math.ceil(CHUNK_BYTES / frameBytes);
  const chunk = Buffer.alloc(atOnce * frameBytes);
  let last: Buffer | null = null;
  for (let done = 0; done < frames; ) {
    const wanted = Math.min(atOnce, frames - done);
    const bytes = fs.readSync(fd, chunk, 0, wanted * frameBytes, frameOffset(done + 1, pageSize));
    const whole = Math.floor(bytes / frameBytes);
    for (let i = 0; i < whole; i++) {
      const frame = chunk.subarray(i * frameBytes, (i + 1) * frameBytes);
      const { first, second } = saltsOfFrame(frame);
      sum.add(wordsOf(frame, 0, 8));
      sum.add(wordsOf(frame, FRAME_HEADER_BYTES, pageSize));
      if (first !== salts.first || second !== salts.second || !sum.isAt(frame, 16)) {
        return { last: null, broken: `is damaged in frame ${done + i + 1} of ${frames}` };
      }
    }
    if (whole < wanted) return { last: null, broken: `ends after ${done + whole} of ${frames} frames` };
    last = Buffer.from(chunk.subarray((whole - 1) * frameBytes, (whole - 1) * frameBytes + FRAME_HEADER_BYTES));
    done += whole;
  }
  return { last, broken: null };
}

/** Frames and their parts are multiples of eight bytes long, so every part lies at a whole word of its buffer. */
const wordsOf = (bytes: Buffer, from: number, length: number): Uint32Array =>
  new Uint32Array(bytes.buffer, bytes.byteOffset + from, length / 4);

/** The running checksum of section 4.2, over pairs of little-endian words. */
class Checksum {
  #first = 0;
  #second = 0;

  add(words: Uint32Array): void {
    let first = this.#first;
    let second = this.#second;
    for (let i = 0; i < words.length; i += 2) {
      first = (first + words[i]! + second) | 0;
      second = (second + words[i + 1]! + first) | 0;
    }
    this.#first = first;
    this.#second = second;
  }

  /** Whether it is what is written at an offset, in big-endian words. */
  isAt(bytes: Buffer, offset: number): boolean {
    return bytes.readInt32BE(offset) === this.#first && bytes.readInt32BE(offset + 4) === this.#second;
  }
}
