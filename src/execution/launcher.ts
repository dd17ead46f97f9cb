/** A shim that was told its attempt directory. */
export interface LaunchedShim {
  readonly pid: number;
  /** Resolves when the process has ended, however it did. What became of the attempt, only its directory says. */
  readonly exited: Promise<void>;
}

/** Starts shims. They outlive the launcher and the worker. */
export interface ShimLauncher {
  /** An attempt will probably be launched in a moment: where no shim waits, one is started meanwhile. Never throws. */
  expect(): void;
  /**
   * Start a shim for the attempt. Resolves when it was told the directory; that it started the job, start.json and process.json say.
   *
   * @throws when no process could be started
   */
  launch(attemptDir: string): Promise<LaunchedShim>;
  /**
   * Start a process of the relay's command as shims are started, that goes on after one attempt: it is told one after the other.
   *
   * @throws when no process could be started
   */
  keep(args: readonly string[]): Promise<ShimProcess>;
  /** End what waits for work, in bounded time. Shims with an attempt go on. */
  close(): Promise<void>;
}

/** A process that is, or is to become, an attempt's shim. */
export interface ShimProcess extends LaunchedShim {
  /** Write a line to its standard input. False when the process is known to be gone. */
  say(line: string): Promise<boolean>;
  /** Write a line to its standard input and close it. False when the process is known to be gone. */
  tell(line: string): Promise<boolean>;
  /** Close its standard input: a shim that waits then ends. */
  dismiss(): void;
  /** KILL, for one that was told nothing and does not end. */
  kill(): void;
}

/**
 * Starts shim processes. `args` follow the relay's command prefix: `__shim <attempt-dir>`, `__shim --spare <spool>` or `__shim --told <spool>`.
 * `logFile`: where standard output and error go; null is /dev/null.
 */
export interface ShimSpawner {
  spawn(args: readonly string[], logFile: string | null): Promise<ShimProcess>;
}
