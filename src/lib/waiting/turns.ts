/** Lets so many through at a time, in the order in which they come, and so many wait. */
export class Turns {
  #inside = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly atOnce: number,
    private readonly waitingMax: number = Number.POSITIVE_INFINITY,
  ) {}

  /**
   * Do something when it is its turn.
   *
   * @param full what is thrown where as many wait as may
   * @throws what it throws
   */
  async run<T>(work: () => Promise<T>, full: () => Error = () => new Error("too many wait for their turn")): Promise<T> {
    if (this.#inside < this.atOnce) this.#inside++;
    else {
      if (this.#waiting.length >= this.waitingMax) throw full();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next();
    }
  }
}
