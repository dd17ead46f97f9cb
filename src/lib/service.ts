/** Something with a life of its own. Starting twice and stopping twice are both harmless. */
export interface Service {
  start(): Promise<void>;
  /** Resolves when everything that start began is gone. */
  stop(): Promise<void>;
}

/** Build a Service from two steps that then need not guard against being called twice or in parallel. */
export function service(steps: { start: () => Promise<void> | void; stop: () => Promise<void> | void }): Service {
  let starting: Promise<void> | null = null;
  let stopping: Promise<void> | null = null;
  return {
    start() {
      starting ??= Promise.resolve().then(steps.start);
      return starting;
    },
    stop() {
      stopping ??= (async () => {
        if (starting === null) return;
        await starting.catch(() => undefined);
        await steps.stop();
      })();
      return stopping;
    },
  };
}
