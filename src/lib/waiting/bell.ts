/** Something to wait for that remembers having been rung, so that what happens between a look and the wait is not missed. For one waiter. */
export class Bell {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Forget the rings so far: a look follows that sees what they were about. */
  reset(): void {
    this.#rung = false;
  }

  /** Resolves at the next ring (one that was not waited for yet counts), or after so many milliseconds; without them it waits for a ring. */
  async wait(ms?: number): Promise<void> {
    if (!this.#rung) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        if (ms !== undefined) timer = setTimeout(resolve, ms);
      });
      this.#wake = null;
      clearTimeout(timer);
    }
    this.#rung = false;
  }
}
