import { type ChildProcess, spawn } from "node:child_process";
import { Duplex } from "node:stream";

export interface ProcessRequest {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  /** Gets its standard error as it comes. */
  readonly onStderr?: (text: string) => void;
}

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
  /** What it said last on its standard error, 64 KiB at most. */
  readonly stderr: string;
}

const MAX_STDERR = 64 * 1024;
const END_AFTER_MS = 1_000;
const KILL_AFTER_MS = 2_000;

/**
 * A process whose standard input and output are one byte stream. It leads a process group of its own, which ends with the stream: a terminal's
 * Ctrl-C does not reach it, and nothing that it started stays behind.
 */
export class ProcessStream extends Duplex {
  readonly #child: ChildProcess;
  readonly #stderr: Buffer[] = [];
  #stderrLength = 0;
  #outputEnded = false;
  #killing: ReturnType<typeof setTimeout> | undefined;
  /** Resolves when the process is over, also when it could not be started; never rejects. */
  readonly ended: Promise<ProcessEnd>;

  constructor({ argv, env, directory, onStderr }: ProcessRequest) {
    super({ allowHalfOpen: true });
    const [program, ...args] = argv;
    const child = spawn(program, args, { env: { ...env }, cwd: directory, stdio: ["pipe", "pipe", "pipe"], detached: true });
    this.#child = child;
    child.stdout!.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) child.stdout!.pause();
    });
    child.stdout!.on("end", () => {
      this.#outputEnded = true;
      this.push(null);
    });
    child.stderr!.on("data", (chunk: Buffer) => {
      this.#keep(chunk);
      onStderr?.(chunk.toString("utf8"));
    });
    for (const stream of [child.stdin!, child.stdout!, child.stderr!]) stream.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      const done = (code: number | null, signal: string | null): void => {
        clearTimeout(this.#killing);
        this.destroy();
        resolve({ code, signal, stderr: Buffer.concat(this.#stderr).toString("utf8") });
      };
      child.on("error", (error) => {
        this.#keep(Buffer.from(error.message));
        if (child.pid === undefined) done(null, null);
      });
      child.on("close", done);
    });
  }

  /** Of the process, which leads its group; undefined where it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  #keep(chunk: Buffer): void {
    this.#stderr.push(chunk);
    this.#stderrLength += chunk.length;
    // The end of it says why.
    while (this.#stderrLength > MAX_STDERR && this.#stderr.length > 1) this.#stderrLength -= this.#stderr.shift()!.length;
  }

  override _read(): void {
    this.#child.stdout!.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#child.stdin!.write(chunk, (error) => callback(error));
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#child.stdin!.end(() => callback());
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#child.stdin?.destroy();
    const over = this.#child.exitCode !== null || this.#child.signalCode !== null;
    // One that has closed its output is about to end by itself, and to say with which code.
    if (over) this.#signal("SIGTERM");
    else if (this.#outputEnded) this.#killing = setTimeout(() => this.#end(), END_AFTER_MS);
    else this.#end();
    callback(error);
  }

  #end(): void {
    this.#signal("SIGTERM");
    this.#killing = setTimeout(() => this.#signal("SIGKILL"), KILL_AFTER_MS);
  }

  #signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(process.platform === "win32" ? this.#child.pid : -this.#child.pid, signal);
    } catch {
      // gone
    }
  }
}

/** What a program of the user's gets of the request's variables: everything but the relay's own credentials. */
export function withoutCredentials(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    if (value !== undefined && !/^CLIO_RELAY_(?:.*_)?(?:TOKEN|SECRET)$/.test(name)) kept[name] = value;
  }
  return kept;
}
