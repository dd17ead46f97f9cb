import type { Duplex } from "node:stream";

const MAX_BYTES = 16 * 1024;
const END = "\r\n\r\n";

/** Why no head came: what was there instead is too long, or the stream was over. */
export type NoHead = "too_long" | "ended";

/**
 * Read a stream up to the empty line that ends the head of an answer (RFC 9112, section 2.1), or up to another end. What comes behind it stays to be read,
 * and the stream is paused.
 *
 * @returns the head as Latin-1, without the empty line
 * @throws the stream's error; the signal's reason
 */
export function readHead(stream: Duplex, signal: AbortSignal): Promise<{ readonly text: string } | NoHead> {
  return new Promise((resolve, reject) => {
    let read: Buffer = Buffer.alloc(0);
    const stop = (): void => {
      signal.removeEventListener("abort", aborted);
      stream.off("data", onData);
      for (const event of ["end", "close"]) stream.off(event, ended);
      stream.off("error", failed);
      stream.pause();
    };
    const done = (answer: { readonly text: string } | NoHead): void => {
      stop();
      resolve(answer);
    };
    const failed = (error: unknown): void => {
      stop();
      reject(error);
    };
    const aborted = (): void => failed(signal.reason);
    const ended = (): void => done("ended");
    const onData = (chunk: Buffer): void => {
      const from = Math.max(0, read.length - END.length + 1);
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
      const end = read.indexOf(END, from, "latin1");
      if ((end < 0 ? read.length : end) > MAX_BYTES) done("too_long");
      if (end < 0 || end > MAX_BYTES) return;
      done({ text: read.toString("latin1", 0, end) });
      if (read.length > end + END.length) stream.unshift(read.subarray(end + END.length));
    };
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    for (const event of ["end", "close"]) stream.on(event, ended);
    stream.on("error", failed);
    stream.on("data", onData);
  });
}
