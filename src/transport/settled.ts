/** Resolves when the promise is settled either way; rejects with the signal's reason. */
export function settled(promise: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal?.reason);
    if (signal?.aborted) return aborted();
    signal?.addEventListener("abort", aborted, { once: true });
    const done = (): void => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    };
    promise.then(done, done);
  });
}
