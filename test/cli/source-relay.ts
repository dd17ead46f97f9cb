import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { kill, processesMarked } from "../runner/leftovers.ts";
import { removeTree } from "../runner/remove.ts";
import { eventually } from "../runner/wait.ts";

/** The program's first module. */
export const MAIN = path.resolve(import.meta.dir, "../../src/main.ts");

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string | Uint8Array<ArrayBuffer>;
}

const beforeRest = (args: readonly string[]): readonly string[] => args.slice(0, args.includes("--") ? args.indexOf("--") : args.length);

/**
 * An installation of the program as it is in the source, for one test: everything below one directory, and at the end nothing of it
 * still runs.
 */
export class SourceRelay implements AsyncDisposable {
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-cli-"));
  readonly home = path.join(this.directory, "home");

  /** @param before what every command begins with, where it runs in surroundings of its own */
  constructor(
    private readonly env: Readonly<Record<string, string>> = {},
    private readonly before: readonly string[] = [],
  ) {}

  get environment(): Record<string, string> {
    const { PATH = "", CLIO_RELAY_TEST_RUN } = process.env;
    return {
      PATH,
      // Apart from where the commands are typed: Bun keeps a cache there.
      HOME: path.join(this.directory, "user"),
      LANG: "C.UTF-8",
      CLIO_RELAY_HOME: this.home,
      ...(CLIO_RELAY_TEST_RUN === undefined ? {} : { CLIO_RELAY_TEST_RUN }),
      ...this.env,
    };
  }

  /** Start a command; its output is collected by whoever wants it. */
  start(args: readonly string[], { env, cwd, stdin }: RunOptions = {}) {
    return Bun.spawn([...this.before, process.execPath, MAIN, ...args], {
      env: { ...this.environment, ...env },
      cwd: cwd ?? this.directory,
      stdin: stdin === undefined ? "ignore" : typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin,
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  async run(args: readonly string[], options: RunOptions = {}): Promise<Result> {
    const child = this.start(args, options);
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    // Whatever a test asks for: a program that reads it relies on the schema.
    if (stdout !== "" && beforeRest(args).includes("--json")) (await import("./printed.ts")).printedDocuments(args, stdout);
    return { code, stdout, stderr };
  }

  /** Run a command that has to succeed, and return what it printed. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args);
    if (code !== 0) throw new Error(`clio-relay ${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout.trimEnd();
  }

  /** The same with `--json`. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const own = beforeRest(args);
    return JSON.parse(await this.ok(...own, "--json", ...args.slice(own.length))) as T;
  }

  /** Submit and return the job's id. */
  submit(...args: string[]): Promise<string> {
    return this.ok("job", "submit", ...args);
  }

  /** Processes of this installation whose command line has the words. */
  processes(words: string): number[] {
    return processesMarked("CLIO_RELAY_HOME", this.home)
      .filter(({ command }) => command.includes(words))
      .map(({ pid }) => pid);
  }

  daemons(): number[] {
    return this.processes("desktop run");
  }

  /** SIGKILL, and wait until it is gone. */
  async kill(pid: number): Promise<void> {
    kill(pid);
    await eventually(() => !processesMarked("CLIO_RELAY_HOME", this.home).some((found) => found.pid === pid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A process that dies may have started another in its last moment.
    await eventually(() => {
      const left = processesMarked("CLIO_RELAY_HOME", this.home);
      for (const { pid } of left) kill(pid);
      for (const mark of this.#attempts()) for (const { pid } of processesMarked("CLIO_RELAY_ATTEMPT", mark)) kill(pid);
      return left.length === 0;
    });
    removeTree(this.directory);
  }

  #attempts(): string[] {
    const spool = path.join(this.home, "spool");
    if (!fs.existsSync(spool)) return [];
    return [...new Bun.Glob("*/*/attempt-*").scanSync({ cwd: spool, onlyFiles: false })].map((found) => {
      const [, job, attempt] = found.split(path.sep);
      return `${job}/${attempt!.replace("attempt-", "")}`;
    });
  }
}

/** A fresh installation after `init`. */
export async function initialized(env: Readonly<Record<string, string>> = {}, before: readonly string[] = []): Promise<SourceRelay> {
  const relay = new SourceRelay(env, before);
  await relay.ok("init");
  return relay;
}

/** The same with a worker. */
export async function withWorker(env: Readonly<Record<string, string>> = {}): Promise<SourceRelay> {
  const relay = await initialized(env);
  try {
    await relay.ok("worker", "start", "--cluster", "local");
    return relay;
  } catch (error) {
    await relay[Symbol.asyncDispose]();
    throw error;
  }
}
