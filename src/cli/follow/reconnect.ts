import { errorRule, RelayError } from "../../domain/errors.ts";
import { Backoff } from "../../lib/backoff.ts";
import type { Output } from "../io.ts";
import { oneLine } from "../print/safe-text.ts";

const FIRST_MS = 100;
const CAP_MS = 3_000;

/** Whether a failure is one of the way, which a later try may find open. A system's code stands for a connection that broke. */
export const isOutage = (error: unknown): boolean => {
  if (!(error instanceof RelayError)) return error instanceof Error && "code" in error && !("syscall" in error);
  const rule = errorRule(error.code);
  return rule.retryable && rule.http === 503;
};

/** Comes back for as long as it takes, says once per outage that it does, and says when it is over. */
export class Reconnect {
  readonly #backoff = new Backoff(FIRST_MS, CAP_MS);
  #announced = false;

  constructor(
    private readonly stderr: Pick<Output, "write">,
    private readonly signal: AbortSignal,
  ) {}

  /** Something came through. */
  async alive(): Promise<void> {
    this.#backoff.reset();
    if (!this.#announced) return;
    this.#announced = false;
    await this.stderr.write("notice: connected again\n");
  }

  /**
   * Wait before the next try.
   *
   * @param error what ended the last one; null when the other side closed in order, which is said only when it is not back at once
   * @throws the error itself when trying again is of no use; the signal's reason when it is aborted
   */
  async wait(error: unknown): Promise<void> {
    this.signal.throwIfAborted();
    if (error !== null) {
      if (!isOutage(error)) throw error;
      if (!this.#announced) {
        this.#announced = true;
        const why = error instanceof RelayError ? oneLine(error.message) : "the connection broke";
        await this.stderr.write(`notice: ${why}; trying again until it is back\n`);
      }
    }
    await sleep(this.#backoff.next(), this.signal);
  }

  /** Do something until it works. */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await work();
        await this.alive();
        return result;
      } catch (error) {
        await this.wait(error);
      }
    }
  }
}

/** Resolves after so many milliseconds; rejects with the signal's reason when it is aborted before. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
