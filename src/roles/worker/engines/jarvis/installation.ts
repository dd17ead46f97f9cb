import { LIMITS } from "../../../../domain/limits.ts";
import { type Inspection, inspect } from "../../../../execution/jarvis/inspection.ts";
import { findJarvis, type JarvisProgram, type JarvisSite } from "../../../../execution/jarvis/program.ts";
import { type Answered, ask, type DocumentOf, type ExecutionName, type Question } from "../../../../execution/jarvis/questions.ts";
import type { Clock } from "../../../../lib/waiting/clock.ts";
import { Turns } from "../../../../lib/waiting/turns.ts";

/** Commands of JARVIS that run for the worker at a time: each is a Python that starts. */
const AT_ONCE = 4;
/** How long an answer about packages and places is good for, so that many submissions of one pipeline ask once. */
const GOOD_FOR_MS = 10_000;
const REMEMBERED = 64;

/** The cluster's JARVIS-CD, as its worker asks it. */
export class JarvisInstallation {
  readonly #turns = new Turns(AT_ONCE);
  readonly #inspections = new Map<string, { readonly until: number; readonly answer: Promise<Inspection> }>();

  constructor(
    private readonly site: JarvisSite,
    private readonly clock: Pick<Clock, "monotonic">,
  ) {}

  /** @throws RelayError engine_unavailable */
  program(): Promise<JarvisProgram> {
    return findJarvis(this.site);
  }

  /** See `inspect`. @throws RelayError engine_unavailable */
  inspect(packages: readonly string[], pipeline: string | null = null): Promise<Inspection> {
    const wanted = [...new Set(packages)].sort();
    const key = JSON.stringify([wanted, pipeline]);
    const now = this.clock.monotonic();
    const known = this.#inspections.get(key);
    if (known !== undefined && known.until > now) return known.answer;
    const answer = this.#turns.run(async () =>
      inspect(this.site, await this.program(), { packages: wanted, pipeline, textMax: LIMITS.pipelineBytes }),
    );
    this.#remember(key, { until: now + GOOD_FOR_MS, answer });
    return answer;
  }

  /** A failure is told to everybody who asked for it, and to nobody later. */
  #remember(key: string, entry: { readonly until: number; readonly answer: Promise<Inspection> }): void {
    for (const old of this.#inspections.keys()) {
      if (this.#inspections.size < REMEMBERED) break;
      this.#inspections.delete(old);
    }
    this.#inspections.set(key, entry);
    entry.answer.catch(() => {
      if (this.#inspections.get(key) === entry) this.#inspections.delete(key);
    });
  }

  /** See `ask`. @throws RelayError engine_unavailable where the program is gone */
  ask<Q extends Question>(question: Q, name: ExecutionName): Promise<Answered<DocumentOf<Q>>> {
    return this.#turns.run(async () => ask(this.site, await this.program(), question, name));
  }
}
