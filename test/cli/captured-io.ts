import type { CliIo, Output } from "../../src/cli/io.ts";
import { readEnvironment } from "../../src/config/environment.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";

/** An output that keeps what is written to it. */
export class Captured implements Output {
  text = "";

  constructor(
    readonly isTerminal = false,
    readonly columns = 80,
  ) {}

  write(data: string | Uint8Array): Promise<void> {
    this.text += typeof data === "string" ? data : Buffer.from(data).toString("utf8");
    return Promise.resolve();
  }

  writeAside(data: string): Promise<void> {
    return this.write(data);
  }

  log(line: string): void {
    this.text += line;
  }
}

export interface CapturedOptions {
  readonly variables?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly terminal?: boolean;
  readonly columns?: number;
  readonly stdin?: string;
}

/** Input and output of a command line that runs inside the test. */
export interface CapturedIo extends CliIo {
  readonly stdout: Captured;
  readonly stderr: Captured;
  /** What Ctrl-C does. */
  interrupt(): void;
}

export function capturedIo({ variables = {}, cwd = "/", terminal = false, columns = 80, stdin = "" }: CapturedOptions = {}): CapturedIo {
  const listeners = new Set<() => void>();
  return {
    stdout: new Captured(terminal, columns),
    stderr: new Captured(terminal, columns),
    stdin: {
      isTerminal: false,
      read: () => Promise.resolve(Buffer.from(stdin)),
      line: () => Promise.resolve(stdin),
      bytes: () => new Blob([stdin]).stream() as unknown as AsyncIterable<Uint8Array>,
    },
    terminal: () => Promise.resolve(null),
    stopSelf: () => undefined,
    env: readEnvironment(variables, cwd),
    raw: { commandLine: () => null, environment: () => null },
    clock: systemClock,
    self: ["/nowhere/clio-relay"],
    onSignal(signal, listener) {
      if (signal === "SIGINT") listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    interrupt() {
      for (const listener of [...listeners]) listener();
    },
  };
}
