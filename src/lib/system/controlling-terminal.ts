import fs from "node:fs";
import { setTerminalModes, terminalModes, withoutEcho } from "./libc.ts";

const MAX_BYTES = 16 * 1024;

/** The terminal that this process belongs to (tty(4)), wherever standard input and output lead. */
export class ControllingTerminal {
  /** The modes to go back to, while others hold. */
  #before: Uint8Array | null = null;

  private constructor(private readonly fd: number) {}

  /** Null where there is none: under cron, in a container, on Windows. */
  static open(): ControllingTerminal | null {
    try {
      return new ControllingTerminal(fs.openSync("/dev/tty", fs.constants.O_RDWR | fs.constants.O_NOCTTY));
    } catch {
      return null;
    }
  }

  write(text: string): void {
    fs.writeSync(this.fd, text);
  }

  /** Whether what is typed is shown. What was typed before a change is thrown away. */
  setEcho(shown: boolean): void {
    if (shown && this.#before !== null) {
      setTerminalModes(this.fd, this.#before);
      this.#before = null;
    } else if (!shown && this.#before === null) {
      this.#before = terminalModes(this.fd);
      setTerminalModes(this.fd, withoutEcho(this.#before));
    }
  }

  /**
   * The next line without its end; null at the end of input (Ctrl-D). The system's line editing applies. A read that is given up with the signal goes on
   * unseen until a line is typed.
   *
   * @throws the signal's reason; RangeError when it has more than 16 KiB
   */
  async line(signal: AbortSignal): Promise<string | null> {
    const chunks: Buffer[] = [];
    for (let size = 0; ; ) {
      const chunk = await this.#read(signal);
      if (chunk.length === 0) return size === 0 ? null : Buffer.concat(chunks).toString("utf8");
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) throw new RangeError(`a line has more than ${MAX_BYTES} bytes`);
      if (chunk.at(-1) === 0x0a)
        return Buffer.concat(chunks)
          .toString("utf8")
          .replace(/\r?\n$/, "");
    }
  }

  #read(signal: AbortSignal): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const aborted = (): void => reject(signal.reason);
      signal.addEventListener("abort", aborted, { once: true });
      const buffer = Buffer.alloc(4_096);
      fs.read(this.fd, buffer, 0, buffer.length, null, (error, count) => {
        signal.removeEventListener("abort", aborted);
        if (error !== null) reject(error);
        else resolve(buffer.subarray(0, count));
      });
    });
  }

  /** Modes are as they were. */
  close(): void {
    this.setEcho(true);
    fs.closeSync(this.fd);
  }
}
