/** Delays that double from `firstMs` to `capMs`, each with a part taken off at random so that peers do not step together. */
export class Backoff {
  #next: number;

  /** @param spread the most that is taken off, of 1 */
  constructor(
    private readonly firstMs: number,
    private readonly capMs: number,
    private readonly random: () => number = Math.random,
    private readonly spread = 0.2,
  ) {
    this.#next = firstMs;
  }

  /** The next delay in milliseconds. */
  next(): number {
    const delay = this.#next;
    this.#next = Math.min(this.capMs, delay * 2);
    return delay * (1 - this.spread * this.random());
  }

  reset(): void {
    this.#next = this.firstMs;
  }
}
