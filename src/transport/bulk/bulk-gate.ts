/** How a range came: milliseconds until its first byte, and until its last. */
export interface RangeTiming {
  readonly firstByteMs: number;
  readonly totalMs: number;
}

const LEAST = 2;
const MOST = 16;
/** A wait that is this much longer than the shortest one, or a quarter of that, means that bytes of ours stand in a queue. */
const QUEUE_MS = 2;
const QUEUE_SHARE = 0.25;
/** As fast as the fastest, give or take. */
const AS_FAST = 1.2;
/** What was measured this long ago says nothing about the path. */
const FORGET_MS = 10_000;

/**
 * Lets ranges of all transfers of a link through, a few at a time, in the order in which they come. How many is found out from how they come: more as
 * long as more make none slower (the path is long), fewer when they have to wait for each other (the path is full), so that little stands
 * in the way of a small request.
 */
export class BulkGate {
  #limit = LEAST;
  #inside = 0;
  readonly #waiting: (() => void)[] = [];
  #shortestWait = Number.POSITIVE_INFINITY;
  #fastest = Number.POSITIVE_INFINITY;
  #lastAt = 0;

  constructor(private readonly monotonic: () => number = () => performance.now()) {}

  /** How many ranges may be under way. */
  get limit(): number {
    return this.#limit;
  }

  /** Wait for a turn. Whoever got one calls the function that it resolves with, once, when the range is over: with its timing if it came whole. */
  async enter(signal: AbortSignal): Promise<(timing?: RangeTiming) => void> {
    signal.throwIfAborted();
    if (this.#inside < this.#limit) this.#inside++;
    else await this.#turn(signal);
    if (this.monotonic() - this.#lastAt > FORGET_MS) this.#forget();
    return (timing) => {
      if (timing !== undefined) this.#learn(timing);
      this.#inside--;
      while (this.#inside < this.#limit && this.#waiting.length > 0) {
        this.#inside++;
        this.#waiting.shift()!();
      }
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        reject(signal.reason);
      };
      const turn = (): void => {
        signal.removeEventListener("abort", aborted);
        resolve();
      };
      signal.addEventListener("abort", aborted, { once: true });
      this.#waiting.push(turn);
    });
  }

  #forget(): void {
    this.#limit = LEAST;
    this.#shortestWait = Number.POSITIVE_INFINITY;
    this.#fastest = Number.POSITIVE_INFINITY;
    this.#lastAt = this.monotonic();
  }

  /** What fills the path: one that comes, one that waits behind it, and as many as come within the time that a question takes. */
  #useful(): number {
    const comes = Math.max(0.5, this.#fastest - this.#shortestWait);
    return Number.isFinite(comes) ? LEAST + Math.ceil(this.#shortestWait / comes) : LEAST;
  }

  #learn({ firstByteMs, totalMs }: RangeTiming): void {
    this.#lastAt = this.monotonic();
    this.#shortestWait = Math.min(this.#shortestWait, firstByteMs);
    const queue = firstByteMs - this.#shortestWait;
    const tolerated = Math.max(QUEUE_MS, this.#shortestWait * QUEUE_SHARE);
    if (queue > tolerated) this.#limit = Math.max(LEAST, this.#limit - 1);
    else if (totalMs <= this.#fastest * AS_FAST) this.#limit = Math.min(MOST, this.#useful(), this.#limit + 1);
    this.#fastest = Math.min(this.#fastest, totalMs);
  }
}
