/**
 * The promise's own end, or the signal's reason where that comes first. What is waited for may never end; it has to be told of the signal by other means.
 *
 * @param unwanted gets what the promise resolves with after that
 */
export function untilAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  unwanted: (late: T) => void = () => undefined,
): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      reject(signal.reason);
      promise.then(unwanted).catch(() => undefined);
    };
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}
