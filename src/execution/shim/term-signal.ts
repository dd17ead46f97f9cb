/** Whether, and when, the shim was asked to end. */
export interface TermSignal {
  readonly received: boolean;
  /** Resolves at the first such signal. */
  readonly promise: Promise<void>;
}

/** Listen for TERM and INT; HUP is passed over, as nohup(1) does. */
export function listenForTerm(): TermSignal {
  const { promise, resolve } = Promise.withResolvers<void>();
  const state = { received: false, promise };
  const onSignal = (): void => {
    state.received = true;
    resolve();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("SIGHUP", () => undefined);
  return state;
}
