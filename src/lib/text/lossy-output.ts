import fs from "node:fs";
import { takesBytes } from "../system/libc.ts";

/** What a pipe takes in one piece, without waiting for its reader, once it takes anything: PIPE_BUF of pipe(7), and of pipe(2) on macOS. */
const PIECE = process.platform === "darwin" ? 512 : 4_096;
const LINE_END = "\n".charCodeAt(0);

/** Lines for a descriptor whose reader may be slow, or stopped: nothing waits for it. What it does not take is left out and counted, and it is told so as soon as it takes something again. */
export class LossyOutput {
  #omitted = 0;
  /** Whether the line that was written last is whole. */
  #whole = true;

  /** @param omittedLine what stands for so many lines that were left out, with its end */
  constructor(
    private readonly fd: number,
    private readonly omittedLine: (count: number) => string,
  ) {}

  /** @param line with its end */
  write(line: string): void {
    if (this.#omitted > 0 && this.#put(this.omittedLine(this.#omitted))) this.#omitted = 0;
    if (this.#omitted > 0 || !this.#put(line)) this.#omitted++;
  }

  /** Whether all of it was taken. */
  #put(line: string): boolean {
    const bytes = Buffer.from(this.#whole ? line : `\n${line}`);
    for (let at = 0; at < bytes.length; ) {
      const wrote = this.#piece(bytes.subarray(at, at + PIECE));
      if (wrote === 0) return false;
      at += wrote;
      this.#whole = bytes[at - 1] === LINE_END;
    }
    return true;
  }

  #piece(bytes: Buffer): number {
    try {
      return this.#takes() ? fs.writeSync(this.fd, bytes) : 0;
    } catch {
      // There is nowhere else to say so.
      return 0;
    }
  }

  #takes(): boolean {
    // A file makes nobody wait, and Windows does not say who would.
    return process.platform === "win32" || fs.fstatSync(this.fd).isFile() || takesBytes(this.fd);
  }
}
