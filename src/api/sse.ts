import { Bell } from "../lib/waiting/bell.ts";
import type { Clock } from "../lib/waiting/clock.ts";
import { timestamp } from "../lib/waiting/clock.ts";

const KEEP_ALIVE_MS = 15_000;
/** How long a client may leave what it was sent before its stream is cut, in milliseconds. */
const STALLED_MS = 60_000;

/** Fields of an answer that goes on: nobody on the way is to keep it, or to hold back what has come of it (nginx). */
export const LIVE = { "cache-control": "no-store", "x-accel-buffering": "no" };

/** One message to send. `data` must be JSON-serializable. */
export interface OutgoingMessage {
  readonly event: string;
  readonly id: string | number;
  readonly data: unknown;
}

export interface SseOptions {
  /** Yields messages; ends the stream when it returns. Pulled only while the client takes them. */
  readonly messages: (signal: AbortSignal) => AsyncGenerator<OutgoingMessage>;
  /** Aborted when the client goes away or the server drains. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly stalledMs?: number;
}

/**
 * An event stream answer (HTML standard, section 9.2): back-pressure by pull, a comment line when nothing was sent for 15 s, and an end for who does not take what
 * was sent.
 */
export function sseResponse({ messages, signal, clock, stalledMs = STALLED_MS }: SseOptions): Response {
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const source = messages(ended);
  const encoder = new TextEncoder();
  let pending: Promise<IteratorResult<OutgoingMessage>> | null = null;
  let untaken: ReturnType<typeof setTimeout> | undefined;
  const leave = async (): Promise<void> => {
    clearTimeout(untaken);
    stop.abort();
    await source.return(undefined).catch(() => undefined);
  };
  const send = (controller: ReadableStreamDefaultController<Uint8Array>, text: string): void => {
    controller.enqueue(encoder.encode(text));
    untaken = setTimeout(() => {
      controller.error(undefined);
      void leave();
    }, stalledMs);
  };
  const body = new ReadableStream<Uint8Array>({
    // Called when the client has taken what was sent.
    async pull(controller) {
      clearTimeout(untaken);
      pending ??= source.next();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const quiet = new Promise<"quiet">((resolve) => {
        timer = setTimeout(() => resolve("quiet"), KEEP_ALIVE_MS);
      });
      try {
        const next = await Promise.race([pending, quiet]);
        if (next === "quiet") return send(controller, `: ${timestamp(clock)}\n\n`);
        pending = null;
        if (next.done) controller.close();
        else send(controller, format(next.value));
      } catch (error) {
        // A stream that fails while it ends is no whole one; nobody needs to hear why.
        controller.error(ended.aborted ? undefined : error);
      } finally {
        clearTimeout(timer);
      }
    },
    cancel: leave,
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", ...LIVE } });
}

const format = ({ event, id, data }: OutgoingMessage): string => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/**
 * Waits for changes without missing one: it listens from the moment it is made, so a change between looking at the state
 * and `wait` ends that wait at once. The signal's abort counts as a change, every time.
 */
export function waker(subscribe: (listener: () => void) => () => void, signal: AbortSignal) {
  const bell = new Bell();
  const ring = () => bell.ring();
  const unsubscribe = subscribe(ring);
  signal.addEventListener("abort", ring, { once: true });
  return {
    async wait(timeoutMs?: number): Promise<void> {
      if (!signal.aborted) await bell.wait(timeoutMs);
    },
    close(): void {
      unsubscribe();
      signal.removeEventListener("abort", ring);
    },
  };
}
