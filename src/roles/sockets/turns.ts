import type { Carrier } from "./carrier.ts";

/** Above so many bytes that are held for all together, sources take turns. */
export const ENOUGH = 8 * 1024 * 1024;
/** What one read may bring. */
const READ_MAX = 512 * 1024;
/** How long a source waits for its turn at the most, and how often is looked; milliseconds. */
const LATEST_MS = 1_000;
const LOOK_MS = 5;

/**
 * When sources whose bytes have been taken are read again. What each brings at once is large, and most of it may have to be held for the other side: where much is held already, the next
 * source goes on when less is, or when it has waited for long.
 */
export class Turns {
  readonly #queue: { readonly source: Carrier; readonly since: number }[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;

  /**
   * @param held bytes that are held at present for sides that take them
   * @param now the monotonic clock
   */
  constructor(
    private readonly held: () => number,
    private readonly now: () => number,
  ) {}

  /** Read a source again, now or soon. One that is over meanwhile is not. */
  next(source: Carrier): void {
    if (this.#queue.length === 0 && this.held() < ENOUGH) {
      source.resume();
      return;
    }
    this.#queue.push({ source, since: this.now() });
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
  }

  #look(): void {
    const at = this.now();
    let room = ENOUGH - this.held();
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      if (room <= 0 && at - first.since < LATEST_MS) return;
      this.#queue.shift();
      room -= READ_MAX;
      first.source.resume();
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
