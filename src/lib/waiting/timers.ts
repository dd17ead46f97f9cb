/** Source of timers; passed in, so that tests decide what time it is. */
export interface Timers {
  /** Run once after so many milliseconds. Returns the way to prevent it. */
  after(ms: number, run: () => void): () => void;
}

export const systemTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
