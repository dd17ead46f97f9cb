import { RelayError } from "../domain/errors.ts";

/** How long a cluster may take for an answer, in milliseconds; what waits says for how long itself. */
export const ASK_MS = 30_000;

/**
 * Ask for something, for a time.
 *
 * @param who is asked, for people
 * @param signal of whoever wants the answer
 * @throws RelayError observation_timeout when the time is over; the signal's reason when it is aborted
 */
export async function asked<T>(who: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>, ms = ASK_MS): Promise<T> {
  const over = new AbortController();
  const timer = setTimeout(() => {
    over.abort(
      new RelayError("observation_timeout", `${who} took the request, and has not answered in ${ms / 1_000} s`, {
        scheduler_action: "none",
        relay_action: "none",
      }),
    );
  }, ms);
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    clearTimeout(timer);
  }
}
