/** How long a condition may take, in milliseconds: long enough for a machine that does ten other things. */
const WAIT_MS = 120_000;

export interface EventuallyOptions {
  /** How long to go on, in milliseconds. */
  readonly timeoutMs?: number;
  /** Pause between two looks, in milliseconds. */
  readonly everyMs?: number;
  /** What is waited for, for the message of a failure. */
  readonly what?: string;
}

/**
 * Look until there is something to see: calls `look` again and again until it returns anything but false, null or undefined,
 * and returns that. A look that throws counts as one that saw nothing. Out of time, it throws with what the last look gave.
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  { timeoutMs = WAIT_MS, everyMs = 20, what = "the condition" }: EventuallyOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let seen: T | undefined;
    let failure: unknown;
    try {
      seen = await look();
    } catch (error) {
      failure = error;
    }
    if (seen !== undefined && seen !== null && seen !== false) return seen as Exclude<T, false | null | undefined>;
    if (performance.now() >= deadline) throw new Error(`${what} did not come about within ${timeoutMs} ms`, { cause: failure ?? seen });
    await Bun.sleep(everyMs);
  }
}
