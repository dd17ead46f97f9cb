/**
 * Measures how long the other side takes, all in all: the time in which it is we who are waited for (a person types a code) does not count.
 * Fires once, then never again.
 */
export class Patience {
  #left: number;
  #since = 0;
  #busy = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    ms: number,
    private readonly onOver: () => void,
  ) {
    this.#left = ms;
    this.#run();
  }

  #run(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(this.onOver, this.#left);
  }

  /** Our turn begins. Turns may overlap. */
  pause(): void {
    if (this.#busy++ > 0) return;
    clearTimeout(this.#timer);
    this.#left = Math.max(0, this.#left - (performance.now() - this.#since));
  }

  resume(): void {
    if (--this.#busy === 0 && this.#left !== Number.POSITIVE_INFINITY) this.#run();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#left = Number.POSITIVE_INFINITY;
  }
}
