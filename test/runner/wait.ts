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
 * and returns that. A look that throws counts as one that saw nothing. Out of time, it throws, with what a look threw last as the cause.
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  { timeoutMs = WAIT_MS, everyMs = 20, what = "the condition" }: EventuallyOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  let by: "the last look" | "a look before the last" | undefined;
  let cause: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== null && seen !== false) return seen as Exclude<T, false | null | undefined>;
      by &&= "a look before the last";
    } catch (thrown) {
      by = "the last look";
      cause = thrown;
    }
    if (performance.now() >= deadline) {
      const late = `${what} did not come about within ${timeoutMs} ms`;
      throw by === undefined ? new Error(late) : new Error(`${late}; ${by} threw`, { cause });
    }
    await Bun.sleep(everyMs);
  }
}
