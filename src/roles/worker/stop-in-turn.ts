import { within } from "../../lib/waiting/within.ts";
import type { Log } from "./context.ts";

/** Longer than any step takes that comes to an end. */
export const STOP_STEP_MS = 10_000;

/**
 * Stop the parts of a worker one after the other. One that does not come to an end, as it waits for something that never comes, or that fails, is
 * said and left behind: the next worker finds what it finds after one that was killed.
 *
 * @param steps what each stops, for people, and how
 */
export async function stopInTurn(
  steps: readonly (readonly [what: string, stop: () => Promise<void> | void | undefined])[],
  log: Log,
  stepMs: number = STOP_STEP_MS,
): Promise<void> {
  for (const [what, stop] of steps) {
    try {
      if (!(await within(Promise.resolve(stop()), stepMs))) log.warn(`not waited for any longer: ${what}`);
    } catch (error) {
      log.error(`could not stop ${what}`, error);
    }
  }
}
