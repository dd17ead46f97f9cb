import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { systemTimers, type Timers } from "../../lib/waiting/timers.ts";
import { type CloseCode, closedBy, type MeetingEnd } from "./codes.ts";
import { encode, FrameParser } from "./frames.ts";
import type { FromClient, FromRelay } from "./messages.ts";

/** How long our `close` may take to go out, in milliseconds. */
const LINGER_MS = 1_000;
/** The connection is given up where more than this waits to be taken, in bytes. */
const UNREAD_MAX = 64 * 1024;

type ReceivedMessage = Exclude<FromRelay, { type: "close" }>;

/** Control frames of a client on a Duplex, until the Duplex is handed on or ends. Nothing is read ahead of what is asked for. */
export class ControlStream {
  readonly #parser = new FrameParser("relay");
  #failure: RelayError | null = null;
  #wake: () => void = () => undefined;
  #released = false;
  #closing = false;

  constructor(
    private readonly duplex: Duplex,
    private readonly timers: Timers = systemTimers,
  ) {
    duplex.on("data", this.#onData);
    duplex.on("end", this.#onEnd);
    duplex.on("close", this.#onEnd);
    // Stays for as long as the Duplex lives: between us and the next owner an error has nobody else to hear it.
    duplex.on("error", this.#onError);
    duplex.pause();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.duplex.pause();
    if (this.#closing) return;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#fail(error as RelayError);
    }
    this.#wake();
  };

  readonly #onEnd = (): void => this.#fail(lost());

  readonly #onError = (error: Error): void => {
    if (!this.#released) this.#fail(lost(error));
  };

  #fail(error: RelayError): void {
    this.#failure ??= error;
    this.#wake();
  }

  /**
   * The next message.
   *
   * @param withinMs after which nothing is waited for any more
   * @throws RelayError as its code has it when a `close` comes; link_down when the Duplex ends or nothing comes; meeting_malformed; meeting_flooded; the
   *   signal's reason
   */
  async receive(withinMs: number, signal?: AbortSignal): Promise<ReceivedMessage> {
    let late = false;
    const prevent = this.timers.after(withinMs, () => {
      late = true;
      this.#wake();
    });
    const aborted = (): void => this.#wake();
    signal?.addEventListener("abort", aborted, { once: true });
    try {
      for (;;) {
        signal?.throwIfAborted();
        const message = this.#take();
        if (message !== null) return message;
        if (this.#failure !== null) throw this.#failure;
        if (late) throw lost(new Error(`nothing came for ${withinMs} ms`));
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          // Whatever comes, and however fast: others have their turn in between.
          setImmediate(() => {
            if (!this.#released) this.duplex.resume();
          });
        });
      }
    } finally {
      this.#wake = () => undefined;
      prevent();
      signal?.removeEventListener("abort", aborted);
    }
  }

  #take(): ReceivedMessage | null {
    const message = this.#parser.take();
    if (message?.type !== "close") return message;
    throw closedBy(message.code, message.retry, message.reason);
  }

  send(message: FromClient): void {
    if (this.duplex.writableLength > UNREAD_MAX) {
      this.#fail(lost(new Error("it does not take what is said to it")));
      this.duplex.destroy();
    } else if (this.duplex.writable) this.duplex.write(encode(message));
  }

  /** Write what comes before all frames. */
  preface(bytes: Buffer): void {
    if (this.duplex.writable) this.duplex.write(bytes);
  }

  /** The Duplex, with everything that came after the last message still to be read. */
  release(): Duplex {
    this.#released = true;
    this.duplex.removeListener("data", this.#onData);
    this.duplex.removeListener("end", this.#onEnd);
    this.duplex.removeListener("close", this.#onEnd);
    this.duplex.pause();
    const rest = this.#parser.rest();
    if (rest.length > 0) this.duplex.unshift(rest);
    return this.duplex;
  }

  /** Say why, and end. Twice is harmless. */
  close(code: CloseCode): void {
    this.#fail(closedBy("done", 0));
    if (this.duplex.destroyed || this.#closing) return;
    this.#closing = true;
    this.send({ type: "close", code, retry: 0 });
    this.duplex.end();
    this.duplex.resume();
    const prevent = this.timers.after(LINGER_MS, () => this.duplex.destroy());
    this.duplex.once("close", prevent);
  }

  destroy(): void {
    this.#fail(closedBy("done", 0));
    this.duplex.destroy();
  }
}

/** What the other side is told when this one gives up over an error. */
export const codeOf = (error: unknown): CloseCode => {
  if (isRelayError(error, "meeting_malformed")) return "malformed";
  return isRelayError(error, "meeting_flooded") ? "flooding" : "done";
};

const lost = (cause?: Error): RelayError =>
  new RelayError(
    "link_down",
    `the connection to the relay-host is gone${cause === undefined ? "" : `: ${cause.message}`}`,
    { retry_ms: 0 } satisfies MeetingEnd,
    undefined,
    { cause },
  );
