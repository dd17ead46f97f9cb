/** Wakes listeners by topic. Listeners are called synchronously and must not throw. */
export class Notifier<T extends string> {
  readonly #listeners = new Map<T, Set<() => void>>();

  /** Returns the way to stop being called. */
  subscribe(topic: T, listener: () => void): () => void {
    const set = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, set);
    set.add(listener);
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.#listeners.get(topic) === set) this.#listeners.delete(topic);
    };
  }

  notify(topic: T): void {
    const set = this.#listeners.get(topic);
    if (set !== undefined) for (const listener of [...set]) listener();
  }

  /** Number of topics that somebody listens to. */
  get size(): number {
    return this.#listeners.size;
  }
}
