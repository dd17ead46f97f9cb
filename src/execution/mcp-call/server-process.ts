import { MCP_LIMITS } from "../../domain/mcp-call.ts";
import { type Line, linesOf } from "../../lib/text/bounded-lines.ts";
import { within } from "../../lib/waiting/within.ts";
import { CallFailed } from "./call-failed.ts";
import type { CallOutput } from "./call-output.ts";

/** What is handed to the kernel. */
export interface ServerCommand {
  /** Absolute path. */
  readonly file: string;
  /** The server's own name, as it was asked for. */
  readonly name: string;
  readonly args: readonly string[];
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** What whoever talks to a server hears of it. After `over` nothing comes any more. */
export interface ServerListener {
  line(line: Line): void | Promise<void>;
  /** It has ended, or cannot be listened to. */
  over(why: CallFailed): void;
}

/** What a server that has ended may still have in its pipes, in milliseconds. */
const LAST_WORDS_MS = 250;
/** From the end of its input to TERM, and from TERM until it is left to the shim; what was under way may take longer to come to its end. */
const BY_ITSELF_MS = 200;
const INTERRUPTED_MS = 1_000;
const TERMINATED_MS = 1_000;
/** Turns of the event loop that are waited at least, and at most, until nothing more comes of what was written before. */
const QUIET_LOOKS = { least: 3, most: 1_000 };

/** A running MCP server: lines in, lines out (Model Context Protocol, Transports, stdio). */
export class ServerProcess {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #read: Promise<void>;
  readonly #errors: Promise<void>;
  #over = false;
  #sent = 0;

  /**
   * @param output where its output counts; another one takes its place when another call begins
   * @throws CallFailed server_missing
   */
  constructor(
    { file, name, args, env }: ServerCommand,
    public output: CallOutput,
    private readonly listener: ServerListener,
  ) {
    try {
      this.#child = Bun.spawn([file, ...args], { argv0: name, env: { ...env }, stdin: "pipe", stdout: "pipe", stderr: "pipe" });
    } catch (error) {
      throw new CallFailed("server_missing", `${name} cannot be started: ${(error as Error).message}`);
    }
    this.#errors = this.#readErrors().catch(() => undefined);
    this.#read = this.#readLines().catch(() => undefined);
    void this.#watch();
  }

  get pid(): number {
    return this.#child.pid;
  }

  /**
   * Write one line. What cannot be written ends the conversation.
   *
   * @param refused called where the line did not reach its end, so that nobody has read it. Of lines that were on their way together it is not told which one it was
   */
  send(message: object, refused?: () => void): void {
    const nth = ++this.#sent;
    const failed = (): void => {
      if (nth === this.#sent) refused?.();
      this.#end(new CallFailed("server_exited", "it takes no input any more"));
    };
    try {
      this.#child.stdin.write(`${JSON.stringify(message)}\n`);
      Promise.resolve(this.#child.stdin.flush()).catch(failed);
    } catch {
      failed();
    }
  }

  /**
   * Have it end: first by the end of its input, then by TERM. What is left then, and what it has started, is the shim's.
   *
   * @param interrupted whether something is under way there
   */
  async end(interrupted = false): Promise<void> {
    this.#over = true;
    try {
      await Promise.resolve(this.#child.stdin.end()).catch(() => undefined);
    } catch {
      // It is gone.
    }
    const { exited } = this.#child;
    if (!(await within(exited, interrupted ? INTERRUPTED_MS : BY_ITSELF_MS))) {
      this.#child.kill("SIGTERM");
      await within(exited, TERMINATED_MS);
    }
    await this.#lastWords();
  }

  /** Resolves when what it has written so far has been taken in: pipes have no order among each other. */
  async quiet(): Promise<void> {
    for (let look = 0, seen = -1; look < QUIET_LOOKS.least || (seen !== this.output.bytes && look < QUIET_LOOKS.most); look++) {
      seen = this.output.bytes;
      await new Promise(setImmediate);
    }
  }

  /** What it has in its pipes; whatever holds them open after it is not waited for long. */
  #lastWords(): Promise<boolean> {
    return within(Promise.all([this.#read, this.#errors]), LAST_WORDS_MS);
  }

  async #readLines(): Promise<void> {
    for await (const line of linesOf(this.#counted(), MCP_LIMITS.responseBytes)) {
      if (line !== null) await this.listener.line(line);
    }
  }

  async *#counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#child.stdout) {
      if (!this.output.came(chunk.length)) {
        const what = `it wrote more than ${MCP_LIMITS.stdoutBytes} bytes to standard output`;
        this.#end(new CallFailed("output_exceeded", what));
        return;
      }
      yield chunk;
    }
  }

  async #readErrors(): Promise<void> {
    for await (const chunk of this.#child.stderr) await this.output.standardError(chunk);
  }

  async #watch(): Promise<void> {
    const { exited } = this.#child;
    await Promise.race([this.#read.then(() => within(exited, LAST_WORDS_MS)), exited.then(() => this.#lastWords())]);
    this.#end(new CallFailed("server_exited", this.#howItEnded()));
  }

  #howItEnded(): string {
    const { exitCode, signalCode } = this.#child;
    if (signalCode !== null) return `it was ended by ${String(signalCode)} before it answered`;
    return exitCode === null ? "it closed its output before it answered" : `it ended with code ${exitCode} before it answered`;
  }

  #end(why: CallFailed): void {
    if (this.#over) return;
    this.#over = true;
    this.listener.over(why);
  }
}
