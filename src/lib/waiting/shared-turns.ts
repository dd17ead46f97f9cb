export type GiveBack = () => void;

interface Waiting {
  readonly enter: (giveBack: GiveBack) => void;
}

/**
 * Places that several share, each named by a key. Nobody holds more than `weight` times what is left free, so that one whose places are not given back leaves some to all
 * others: with weight 1 it has a half at most, and two such have a third each.
 */
export class SharedTurns {
  #taken = 0;
  readonly #holding = new Map<string, number>();
  /** Who waits, in the order of their coming, by key; the key that was served last is the last. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(
    private readonly places: number,
    private readonly options: { readonly weight?: number; readonly waitingMax?: number } = {},
  ) {}

  /** @returns how to give the place back, which may be called twice; null where the key has its share */
  take(key: string): GiveBack | null {
    const mine = this.#holding.get(key) ?? 0;
    const free = this.places - this.#taken;
    if (free < 1 || mine >= (this.options.weight ?? 1) * free) return null;
    this.#taken++;
    this.#holding.set(key, mine + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#left(key);
    };
  }

  /**
   * A place, when it is the caller's turn.
   *
   * @param full what is thrown where as many of that key wait as may
   * @returns how to give it back, which may be called twice
   * @throws the signal's reason
   */
  async enter(key: string, signal: AbortSignal | undefined, full: () => Error): Promise<GiveBack> {
    signal?.throwIfAborted();
    const queue = this.#waiting.get(key) ?? [];
    const place = queue.length === 0 ? this.take(key) : null;
    if (place !== null) return place;
    if (queue.length >= (this.options.waitingMax ?? Number.POSITIVE_INFINITY)) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<GiveBack>();
    const waiting = { enter: resolve };
    queue.push(waiting);
    this.#waiting.set(key, queue);
    const leave = (): void => {
      const at = queue.indexOf(waiting);
      if (at >= 0) queue.splice(at, 1);
      if (queue.length === 0 && this.#waiting.get(key) === queue) this.#waiting.delete(key);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    return promise.finally(() => signal?.removeEventListener("abort", leave));
  }

  #left(key: string): void {
    this.#taken--;
    const left = (this.#holding.get(key) ?? 1) - 1;
    if (left === 0) this.#holding.delete(key);
    else this.#holding.set(key, left);
    // Where a place becomes free every share grows.
    for (let served = true; served; ) {
      served = false;
      for (const one of [...this.#waiting.keys()]) served = this.#serve(one) || served;
    }
  }

  #serve(key: string): boolean {
    const queue = this.#waiting.get(key);
    const [next] = queue ?? [];
    if (queue === undefined || next === undefined) return false;
    const place = this.take(key);
    if (place === null) return false;
    queue.shift();
    this.#waiting.delete(key);
    if (queue.length > 0) this.#waiting.set(key, queue);
    next.enter(place);
    return true;
  }
}
