/** Source of time; passed in, so that tests decide what time it is. */
export interface Clock {
  /** Wall-clock milliseconds since the epoch. May step in either direction; for timestamps only. */
  now(): number;
  /** Milliseconds that never go backwards; for durations and deadlines. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** ISO 8601 UTC with milliseconds. */
export const timestamp = (clock: Clock): string => new Date(clock.now()).toISOString();
