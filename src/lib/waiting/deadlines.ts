/** What waits for something until a moment. */
interface Waiting {
  readonly until: number;
  readonly late: () => void;
}

/**
 * Deadlines of very many short waits, looked at together: a timer for each would cost more than most of the waits do. One is noticed up to
 * `stepMs` late. The clock runs only while something waits.
 */
export class Deadlines {
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | null = null;

  constructor(private readonly stepMs: number) {}

  /** What a promise resolves to. @throws what it rejects with, or what `late` makes when that takes more than `ms` milliseconds */
  async within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
    const { promise: first, resolve, reject } = Promise.withResolvers<T>();
    const waiting: Waiting = { until: performance.now() + ms, late: () => reject(late()) };
    promise.then(resolve, reject);
    this.#waiting.add(waiting);
    this.#timer ??= setInterval(() => this.#look(), this.stepMs);
    try {
      return await first;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #look(): void {
    const now = performance.now();
    for (const { until, late } of this.#waiting) if (until <= now) late();
    if (this.#waiting.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
