import fs from "node:fs";
import path from "node:path";

/** What a job of a soak does, as its program is told in its argument (JSON). */
export interface Work {
  /** Names the job's effects, and what its pattern begins with. */
  readonly key: string;
  /** Directory of the effects of all jobs, outside of the relay's. */
  readonly effects: string;
  readonly stdout: number;
  readonly stderr: number;
  /** Bytes of one write, and the pause after it in milliseconds. */
  readonly chunk: number;
  readonly pauseMs: number;
  /** Reports that it writes to a file of its own: progress and task events in turn. */
  readonly reports: number;
  /** Reports through `clio-relay emit`, likewise. */
  readonly emits: number;
  /** Sizes of its output files, out/0, out/1 … */
  readonly outputs: readonly number[];
  /** How many attempts fail, with exit code 3, before one ends with `exitCode`. */
  readonly failures: number;
  readonly exitCode: number;
  /** Goes on until it is ended, TERM ignored where it is told to. */
  readonly hangs: boolean;
  readonly ignoresTerm: boolean;
  /** Leaves a process that has left its session: null for none, else whether it keeps the environment that it is known by. */
  readonly daemon: "marked" | "bare" | null;
}

/** What an attempt of the work has done so far, as it says itself. */
export interface Effects {
  readonly attempt: number;
  /** How often it was started; more than once is the fault that all of this is about. */
  readonly starts: number;
  readonly stdout: number;
  readonly stderr: number;
  readonly reports: number;
  readonly outputs: number;
}

type Counts = Omit<Effects, "attempt" | "starts">;

/** Key of an attempt's pattern. */
export const patternKey = (work: Pick<Work, "key">, attempt: number, what: string): string => `${work.key}.${attempt}.${what}`;

/** The file that an attempt makes when it starts: only one can, whoever else tries leaves a trace. */
export const effectFile = (work: Pick<Work, "key" | "effects">, attempt: number): string =>
  path.join(work.effects, work.key, `attempt-${attempt}`);

export const daemonFile = (work: Pick<Work, "key" | "effects">, attempt: number): string =>
  path.join(work.effects, work.key, `daemon-${attempt}`);

/** One write of one length, so that a process that is killed in between leaves the one or the other. */
export const countsText = (counts: Counts): string => JSON.stringify(counts).padEnd(200);

/** What each attempt that was started has done. */
export function effectsOf(work: Pick<Work, "key" | "effects">): Effects[] {
  const directory = path.join(work.effects, work.key);
  const names = fs.existsSync(directory) ? fs.readdirSync(directory) : [];
  return names
    .flatMap((name) => /^attempt-(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
    .map((attempt) => {
      const text = fs.readFileSync(path.join(directory, `attempt-${attempt}`), "utf8").trim();
      const counts = text === "" ? { stdout: 0, stderr: 0, reports: 0, outputs: 0 } : (JSON.parse(text) as Counts);
      return { attempt, starts: 1 + names.filter((name) => name.startsWith(`again-${attempt}-`)).length, ...counts };
    });
}
