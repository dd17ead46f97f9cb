import fs from "node:fs";
import path from "node:path";
import { type Environment, variable } from "../config/environment.ts";
import { RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import type { ControllingTerminal } from "../lib/system/controlling-terminal.ts";
import { LossyOutput } from "../lib/text/lossy-output.ts";
import { type Clock, systemClock } from "../lib/waiting/clock.ts";
import { shownText } from "./print/safe-text.ts";

/** A stream that is written to. */
export interface Output {
  readonly isTerminal: boolean;
  /** Width of the terminal in cells; elsewhere COLUMNS (XBD 8.3), or 80. */
  readonly columns: number;
  /** Resolves when the bytes are with the system. Throws OutputClosed when nobody reads any more. */
  write(data: string | Uint8Array): Promise<void>;
  /** The same, while everything else goes on: for a reader that may take nothing for long. What goes on into a program stays as it is. */
  writeAside(data: string): Promise<void>;
  /** A line of a log, with its end: nothing waits for whoever reads it. @param omittedLine what stands for so many that he did not take */
  log(line: string, omittedLine: (count: number) => string): void;
}

/** The terminal that a process belongs to. See ControllingTerminal. */
export type Terminal = Pick<ControllingTerminal, "write" | "setEcho" | "line" | "close">;

/** What a command line has around it. Everything that a verb reads or writes comes through here. */
export interface CliIo {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: {
    readonly isTerminal: boolean;
    /** All of it. Throws RelayError payload_too_large beyond the bound. */
    read(maxBytes: number): Promise<Uint8Array>;
    /** The next line without its end; null at the end of input. */
    line(): Promise<string | null>;
    /** As it comes, until its end. */
    bytes(): AsyncIterable<Uint8Array>;
  };
  /** The terminal that this process belongs to, wherever its input and output lead; null where there is none. */
  terminal(): Promise<Terminal | null>;
  readonly env: Environment;
  /** Arguments and variables as the bytes that this process was given, each ended by a NUL; null where the system does not tell. */
  readonly raw: {
    commandLine(): Uint8Array | null;
    environment(): Uint8Array | null;
  };
  readonly clock: Clock;
  /** How this program is run: the executable, or the runtime and the script. */
  readonly self: readonly string[];
  /** Call `listener` on a signal instead of what the system would do. Returns the way back to that. */
  onSignal(signal: "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGTSTP", listener: () => void): () => void;
  /** Stop this process until somebody lets it go on. */
  stopSelf(): void;
}

/** The reader of our output went away (`| head`): there is nothing left to do, and nothing wrong. */
export class OutputClosed extends Error {}

/** The real thing. */
export function processIo(env: Environment, self: readonly string[]): CliIo {
  return {
    stdout: descriptor(1, env),
    stderr: descriptor(2, env),
    stdin: {
      get isTerminal() {
        return isTerminal(0);
      },
      read: readInput,
      line: readLine,
      bytes: () => Bun.stdin.stream() as unknown as AsyncIterable<Uint8Array>,
    },
    async terminal() {
      if (process.platform === "win32") return (await import("../lib/system/windows-console.ts")).WindowsConsole.open();
      const { ControllingTerminal } = await import("../lib/system/controlling-terminal.ts");
      return ControllingTerminal.open();
    },
    env,
    raw: { commandLine: () => ownFile("cmdline"), environment: () => ownFile("environ") },
    clock: systemClock,
    self,
    onSignal(signal, listener) {
      process.on(signal, listener);
      return () => void process.off(signal, listener);
    },
    stopSelf: () => void process.kill(process.pid, "SIGSTOP"),
  };
}

/** A file of this process in proc(5). */
function ownFile(name: string): Uint8Array | null {
  try {
    return fs.readFileSync(`/proc/self/${name}`);
  } catch {
    return null;
  }
}

/** How this process was started: the executable, or the runtime with the program's first module. */
export const selfCommand = (): readonly string[] =>
  // Modules of an executable lie in a file system of its own (Bun, standalone executables).
  /^(?:\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/.test(import.meta.path)
    ? [process.execPath]
    : [process.execPath, path.resolve(import.meta.dir, "../main.ts")];

/** Whether a descriptor is a terminal. The module that knows loads a good part of Bun's streams, so it is asked only where it can say yes. */
function isTerminal(fd: number): boolean {
  try {
    return fs.fstatSync(fd).isCharacterDevice() && process.getBuiltinModule("node:tty").isatty(fd);
  } catch {
    return false; // closed by whoever started us
  }
}

/** The width that a variable says, for whatever shows the output in the end; null where it is no width. */
function saidColumns(env: Environment): number | null {
  const said = variable(env, "COLUMNS") ?? "";
  return /^[1-9][0-9]{0,4}$/.test(said) ? Number(said) : null;
}

function descriptor(fd: 1 | 2, env: Environment): Output {
  let known: boolean | undefined;
  let lossy: LossyOutput | undefined;
  return {
    log(line, omittedLine) {
      lossy ??= new LossyOutput(fd, omittedLine);
      lossy.write(line);
    },
    get isTerminal() {
      known ??= isTerminal(fd);
      return known;
    },
    get columns() {
      // Asking anything else than a terminal takes 10 ms for nothing.
      return (this.isTerminal && (fd === 1 ? process.stdout.columns : process.stderr.columns)) || (saidColumns(env) ?? 80);
    },
    async write(data) {
      // What goes on into a program stays as it is.
      const bytes = typeof data !== "string" ? data : Buffer.from(fd === 2 || this.isTerminal ? shownText(data) : data);
      await writeAll(fd, bytes, (at) => fs.writeSync(fd, bytes, at));
    },
    writeAside(data) {
      const bytes = Buffer.from(data);
      // A pipe that is full holds up a thread of its own.
      return writeAll(fd, bytes, (at) => writeFrom(fd, bytes, at));
    },
  };
}

/** @param put writes from a place on, and says how many bytes @throws OutputClosed; RelayError local_file_unusable */
async function writeAll(fd: 1 | 2, bytes: Uint8Array, put: (at: number) => number | Promise<number>): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += await put(at);
    } catch (error) {
      if (isErrno(error, "EPIPE")) throw new OutputClosed();
      // Another process made the pipe or terminal non-blocking.
      if (!isErrno(error, "EAGAIN")) throw unwritable(fd, error);
      await Bun.sleep(2);
    }
  }
}

const writeFrom = (fd: number, bytes: Uint8Array, at: number): Promise<number> =>
  new Promise((resolve, reject) => {
    fs.write(fd, bytes, at, bytes.length - at, null, (error, count) => (error === null ? resolve(count) : reject(error)));
  });

/** What a system says of a descriptor that cannot be written to, with the name that people know. */
function unwritable(fd: 1 | 2, error: unknown): RelayError {
  const why = isErrno(error, "ENOSPC", "EDQUOT")
    ? "no space is left on its device"
    : error instanceof Error
      ? error.message
      : String(error);
  const name = fd === 1 ? "standard output" : "standard error";
  return new RelayError("local_file_unusable", `${name} cannot be written to: ${why}`, {}, undefined, { cause: error });
}

async function readInput(maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Bun.stdin.stream() as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes)
      throw new RelayError("payload_too_large", `standard input holds more than ${maxBytes} bytes`, { max_bytes: maxBytes });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function readLine(): Promise<string | null> {
  for await (const line of console) return line;
  return null;
}
