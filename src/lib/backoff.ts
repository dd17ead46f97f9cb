/** Delays that double from `firstMs` to `capMs`, each with up to 20 % taken off at random so that peers do not step together. */
export class Backoff {
  #next: number;

  constructor(
    private readonly firstMs: number,
    private readonly capMs: number,
    private readonly random: () => number = Math.random,
  ) {
    this.#next = firstMs;
  }

  /** The next delay in milliseconds. */
  next(): number {
    const delay = this.#next;
    this.#next = Math.min(this.capMs, delay * 2);
    return delay * (1 - 0.2 * this.random());
  }

  reset(): void {
    this.#next = this.firstMs;
  }
}
