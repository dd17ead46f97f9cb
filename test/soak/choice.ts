import type { OutcomeReason } from "../../src/domain/job.ts";
import { randomOf } from "../runner/soak.ts";
import type { Work } from "./work.ts";

export type Kind = "plain" | "failing" | "bulk" | "reporting" | "leaving" | "retried" | "daemon" | "canceled" | "timeout";

/** Kinds in the share in which they are chosen. */
export const ALL_KINDS: readonly [Kind, ...Kind[]] = [
  "plain",
  "plain",
  "failing",
  "bulk",
  "reporting",
  "reporting",
  "leaving",
  "leaving",
  "retried",
  "daemon",
  "canceled",
  "timeout",
];

/** A job of a soak: what it does, what it is submitted with, and how its attempts end when nobody interferes. */
export interface SoakJob {
  readonly kind: Kind;
  readonly work: Work;
  /** Options of `job submit` besides key, directory and command. */
  readonly options: readonly string[];
  readonly retries: number;
  /** Milliseconds between its submission and its cancel; null where it is not cancelled. */
  readonly cancelAfterMs: number | null;
}

/** Random numbers of one sequence. */
export class Choice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  /** A whole number below the bound. */
  below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  /** A whole number from the one to the other, both included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** One of several; undefined where there are none. */
  of<T>(items: readonly [T, ...T[]]): T;
  of<T>(items: readonly T[]): T | undefined;
  of<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)];
  }
}

const QUIET: Omit<Work, "key" | "effects"> = {
  stdout: 0,
  stderr: 0,
  chunk: 256,
  pauseMs: 0,
  reports: 0,
  emits: 0,
  outputs: [],
  failures: 0,
  exitCode: 0,
  hangs: false,
  ignoresTerm: false,
  daemon: null,
};

/** The next job of a sequence. The same for the same state of `choice`. */
export function chooseJob(choice: Choice, key: string, effects: string, kinds: readonly [Kind, ...Kind[]] = ALL_KINDS): SoakJob {
  const kind = choice.of(kinds);
  const slow = { stdout: choice.between(1, 6_000), stderr: choice.below(1_500), pauseMs: choice.between(1, 60) };
  const outputs = ["--output", "out/*"];
  const job = (work: Partial<Work>, more: Partial<Omit<SoakJob, "work" | "kind">> = {}): SoakJob => ({
    kind,
    work: { ...QUIET, key, effects, ...work },
    options: [],
    retries: 0,
    cancelAfterMs: null,
    ...more,
  });
  switch (kind) {
    case "plain":
      return job(slow);
    case "failing":
      return job({ ...slow, exitCode: 9 });
    case "bulk":
      return job({ stdout: choice.between(1_000_000, 6_000_000), stderr: choice.below(500_000), chunk: 65_536 });
    case "reporting":
      return job({ ...slow, reports: choice.between(1, 12), emits: choice.below(3) });
    case "leaving":
      return job(
        { ...slow, outputs: Array.from({ length: choice.between(1, 5) }, () => choice.of([0, 1, 4_096, 70_000, 2_000_000])) },
        { options: outputs },
      );
    case "retried": {
      const failures = choice.between(1, 2);
      return job({ ...slow, failures, outputs: [1_000] }, { options: ["--retries", "2", ...outputs], retries: 2 });
    }
    case "daemon":
      return job({ ...slow, daemon: choice.of(["marked", "bare"] as const) });
    case "canceled":
      return job(
        { ...slow, hangs: choice.below(3) > 0, ignoresTerm: choice.below(2) > 0, daemon: choice.of(["marked", null] as const) },
        { cancelAfterMs: choice.below(1_500) },
      );
    case "timeout":
      return job(
        { ...slow, hangs: true, ignoresTerm: choice.below(2) > 0, outputs: [5_000] },
        { options: ["--timeout", "1s", ...outputs] },
      );
  }
}

/** How an attempt of the job may end when nothing was done to it. */
export function reasonsOf(job: SoakJob, startedBefore: number): readonly OutcomeReason[] {
  const natural: OutcomeReason = startedBefore < job.work.failures || job.work.exitCode !== 0 ? "exit_nonzero" : "completed";
  if (job.kind === "timeout") return ["timeout"];
  if (job.cancelAfterMs === null) return [natural];
  return job.work.hangs ? ["canceled"] : ["canceled", natural];
}
