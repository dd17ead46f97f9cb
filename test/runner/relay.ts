import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Identity, isAlive } from "../../src/lib/system/process-identity.ts";
import { kill, processesMarked } from "./leftovers.ts";
import { removeTree } from "./remove.ts";
import { eventually } from "./wait.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

/** The built executable that rig and soak tests run. */
export const EXECUTABLE = path.join(ROOT, "dist", process.platform === "win32" ? "clio-relay.exe" : "clio-relay");

/** What a command left. `json` parses stdout as one document. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  json<T = Record<string, unknown>>(): T;
}

export interface RelayOptions {
  /** Further variables for every command, worker and daemon. */
  readonly env?: Readonly<Record<string, string>>;
  /** The directory of the installation, where the test has one of its own (a tmpfs, say). It is not removed. */
  readonly directory?: string;
  /** What every command, worker and daemon is run under: `setpriv …` for another user. */
  readonly under?: readonly string[];
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array<ArrayBuffer>;
  readonly cwd?: string;
  /** What it is run under, besides what all commands are. */
  readonly under?: readonly string[];
}

/**
 * An installation of the built executable for one test: everything below one directory, nothing of the user's environment, and at the end nothing
 * of it still runs. Use it as `await using relay = await startRelay();`, or make it and call `worker()` when the time has come.
 */
export class Relay implements AsyncDisposable {
  readonly directory: string;
  readonly home: string;
  readonly #owned: boolean;
  readonly #started: Bun.Subprocess[] = [];

  constructor(private readonly options: RelayOptions = {}) {
    this.#owned = options.directory === undefined;
    this.directory = options.directory ?? fs.mkdtempSync(path.join(os.tmpdir(), "rig-"));
    this.home = path.join(this.directory, "home");
  }

  get environment(): Record<string, string> {
    const { PATH = "", CLIO_RELAY_TEST_RUN } = process.env;
    return {
      PATH,
      HOME: this.directory,
      LANG: "C.UTF-8",
      CLIO_RELAY_HOME: this.home,
      ...(CLIO_RELAY_TEST_RUN === undefined ? {} : { CLIO_RELAY_TEST_RUN }),
      ...this.options.env,
    };
  }

  /** Where an attempt's files lie. */
  attemptDirectory(jobId: string, attempt = 1, cluster = "local"): string {
    return path.join(this.home, "spool", cluster, jobId, `attempt-${attempt}`);
  }

  /** Run a command to its end, whatever its exit code. */
  async run(args: readonly string[], { env, stdin, cwd, under }: CommandOptions = {}): Promise<CommandResult> {
    const child = Bun.spawn(this.#command(args, under), {
      env: { ...this.environment, ...env },
      cwd: cwd ?? this.directory,
      stdin: stdin === undefined ? "ignore" : typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, stdout, stderr, json: <T>() => JSON.parse(stdout) as T };
  }

  /** Run a command that has to succeed, and return the bytes that it prints. */
  async bytes(...args: readonly string[]): Promise<Buffer> {
    const child = Bun.spawn(this.#command(args), {
      env: this.environment,
      cwd: this.directory,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([child.stdout.bytes(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`clio-relay ${args.join(" ")} ended with ${code}: ${stderr}`);
    return Buffer.from(stdout);
  }

  /** Run a command with `--json` that has to succeed, and return its document. */
  async json<T = Record<string, unknown>>(...args: readonly string[]): Promise<T> {
    const separator = args.indexOf("--");
    const at = separator < 0 ? args.length : separator;
    const result = await this.run([...args.slice(0, at), "--json", ...args.slice(at)]);
    if (result.code !== 0) throw new Error(`clio-relay ${args.join(" ")} ended with ${result.code}: ${result.stderr}`);
    return result.json<T>();
  }

  /** Start a command that goes on. It is ended with the installation. */
  start(args: readonly string[], { env, cwd, under }: CommandOptions = {}): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    const child = Bun.spawn(this.#command(args, under), {
      env: { ...this.environment, ...env },
      cwd: cwd ?? this.directory,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#started.push(child);
    return child;
  }

  /** Start a worker in the foreground and wait until it answers. Its messages go to `worker.log` in the directory. */
  async worker(args: readonly string[] = [], { env, under }: CommandOptions = {}): Promise<Bun.Subprocess> {
    const log = fs.openSync(path.join(this.directory, "worker.log"), "a");
    const child = Bun.spawn(this.#command(["worker", "run", "--cluster", "local", ...args], under), {
      env: { ...this.environment, ...env },
      cwd: this.directory,
      stdin: "ignore",
      stdout: log,
      stderr: log,
    });
    fs.closeSync(log);
    this.#started.push(child);
    const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const answers = async (): Promise<boolean> => ended() || (await this.run(["worker", "status", "--cluster", "local"])).code === 0;
    await eventually(answers, { everyMs: 50, what: "an answer of the worker" });
    if (ended()) throw new Error(`the worker ended with ${child.exitCode ?? child.signalCode}: ${this.workerLog().slice(-2_000)}`);
    return child;
  }

  #command(args: readonly string[], under: readonly string[] = []): string[] {
    return [...(this.options.under ?? []), ...under, EXECUTABLE, ...args];
  }

  workerLog(): string {
    return fs.readFileSync(path.join(this.directory, "worker.log"), "utf8");
  }

  /** End everything that came of this installation, jobs and shims included, and remove its directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#started) child.kill("SIGKILL");
    // Shims and jobs last: while a worker or a daemon lives it may start more.
    for (const { pid } of processesMarked("CLIO_RELAY_HOME", this.home)) kill(pid);
    for (const identity of this.#recorded()) if (isAlive(identity)) kill(identity.pid);
    for (const mark of this.#attemptMarks()) for (const { pid } of processesMarked("CLIO_RELAY_ATTEMPT", mark)) kill(pid);
    await Promise.all(this.#started.map((child) => child.exited));
    if (this.#owned) removeTree(this.directory);
  }

  /** Attempt directories, as `<job_id>/<attempt>` and their path. */
  #attempts(): { mark: string; directory: string }[] {
    const spool = path.join(this.home, "spool");
    if (!fs.existsSync(spool)) return [];
    return [...new Bun.Glob("*/*/attempt-*").scanSync({ cwd: spool, onlyFiles: false })].map((found) => {
      const [, job, attempt] = found.split(path.sep);
      return { mark: `${job}/${attempt!.replace("attempt-", "")}`, directory: path.join(spool, found) };
    });
  }

  #attemptMarks(): string[] {
    return this.#attempts().map(({ mark }) => mark);
  }

  #recorded(): Identity[] {
    return this.#attempts().flatMap(({ directory }) =>
      (["start.json", "process.json"] as const).flatMap((file) => {
        try {
          const record = JSON.parse(fs.readFileSync(path.join(directory, file), "utf8")) as { shim?: Identity; process?: Identity };
          return [record.shim, record.process].filter((identity) => identity !== undefined);
        } catch {
          return []; // not there, or not whole
        }
      }),
    );
  }
}

/** A fresh installation with its cluster `local`, and a worker that answers. */
export async function startRelay(options: RelayOptions = {}, workerArgs: readonly string[] = []): Promise<Relay> {
  const relay = new Relay(options);
  try {
    const init = await relay.run(["init"]);
    if (init.code !== 0) throw new Error(`init ended with ${init.code}: ${init.stderr}`);
    await relay.worker(workerArgs);
    return relay;
  } catch (error) {
    await relay[Symbol.asyncDispose]();
    throw error;
  }
}
