import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { asOneLine } from "../lib/text/safe-text.ts";

/** A command of a site's scheduler. */
export interface SiteCommand {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** Its standard input; empty when left out. */
  readonly input?: string;
  /** After so many milliseconds it gets TERM, and KILL when that does not help. */
  readonly deadlineMs: number;
}

interface Said {
  readonly stdout: string;
  readonly stderr: string;
  /** Whether there was more than is kept. */
  readonly cut: boolean;
}

/**
 * How a command ended; nothing is said of whether that is good. `ended`: by itself. `killed`: by its deadline, or by somebody. `missing`: there is no such
 * program, or it cannot be executed: it has done nothing.
 */
export type SiteCommandEnd =
  | ({ readonly kind: "ended"; readonly code: number } & Said)
  | ({ readonly kind: "killed"; readonly by: "deadline" | "somebody"; readonly signal: string } & Said)
  | { readonly kind: "missing"; readonly program: string };

export type RunSiteCommand = (command: SiteCommand) => Promise<SiteCommandEnd>;

/** What is kept of each of a command's two outputs. */
export const OUTPUT_MAX_BYTES = 8 * 1024 * 1024;
/** How long it may take to end after TERM. */
const KILL_AFTER_MS = 2_000;
/** How long its output is waited for after it has ended: somebody whom it started may hold it open. */
const LINGER_MS = 1_000;

/** Variables that name the user and the site's configuration; a command of a site gets no other. */
const PASSED = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF"],
  ...["SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT"],
];

/** The environment of a site's commands, of all variables that the worker has. Messages are in English, as numbers and dates are. */
export function siteEnvironment(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const environment: Record<string, string> = { LC_ALL: "C" };
  for (const name of PASSED) {
    const value = variables[name];
    if (value !== undefined && value !== "") environment[name] = value;
  }
  return environment;
}

/** One of a command's outputs, as much as is kept of it. */
class Kept {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  cut = false;
  readonly ended: Promise<void>;

  constructor(stream: Readable) {
    this.ended = new Promise((resolve) => {
      stream.on("data", (chunk: Buffer) => this.#keep(chunk));
      stream.on("error", () => undefined);
      stream.on("close", resolve);
    });
  }

  #keep(chunk: Buffer): void {
    const room = OUTPUT_MAX_BYTES - this.#bytes;
    if (chunk.length > room) this.cut = true;
    if (room <= 0) return;
    const part = chunk.subarray(0, room);
    this.#chunks.push(part);
    this.#bytes += part.length;
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}

/** Run a command of a site: never through a shell, in `/`, in a process group of its own that ends with its deadline. Rejects never. */
export function runSiteCommand({ argv, environment, input = "", deadlineMs }: SiteCommand): Promise<SiteCommandEnd> {
  const [name, ...args] = argv;
  const program = Bun.which(name, { PATH: environment["PATH"] ?? "" });
  if (program === null) return Promise.resolve({ kind: "missing", program: name });
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: "/", env: { ...environment }, stdio: ["pipe", "pipe", "pipe"], detached: true });
    const stdout = new Kept(child.stdout);
    const stderr = new Kept(child.stderr);
    let late = false;
    let hard: NodeJS.Timeout | undefined;
    const signal = (which: "SIGTERM" | "SIGKILL"): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, which);
      } catch {
        // gone
      }
    };
    const soft = setTimeout(() => {
      late = true;
      signal("SIGTERM");
      hard = setTimeout(() => signal("SIGKILL"), KILL_AFTER_MS);
    }, deadlineMs);
    const clear = (): void => {
      clearTimeout(soft);
      clearTimeout(hard);
    };
    child.on("error", () => {
      if (child.pid !== undefined) return;
      clear();
      resolve({ kind: "missing", program: name });
    });
    child.on("exit", (code, by) => {
      const said = (): Said => ({ stdout: stdout.text, stderr: stderr.text, cut: stdout.cut || stderr.cut });
      const lingering = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, LINGER_MS);
      void Promise.all([stdout.ended, stderr.ended]).then(() => {
        clearTimeout(lingering);
        clear();
        if (late) {
          // What it has started does not outlive its deadline either.
          signal("SIGKILL");
          resolve({ kind: "killed", by: "deadline", signal: by ?? "SIGTERM", ...said() });
        } else if (code === null) resolve({ kind: "killed", by: "somebody", signal: by ?? "SIGKILL", ...said() });
        else resolve({ kind: "ended", code, ...said() });
      });
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });
}

/** What a command said last, for people: one that speaks of both ends in its errors. */
export function lastWords(end: SiteCommandEnd, max = 1_024): string {
  if (end.kind === "missing") return `there is no ${end.program}`;
  const text = asOneLine((end.stderr.trim() || end.stdout.trim()).slice(-max));
  const how =
    end.kind === "ended" ? `ended with ${end.code}` : end.by === "deadline" ? "did not end within its time" : `was ended by ${end.signal}`;
  return text === "" ? how : `${how}: ${text}`;
}
