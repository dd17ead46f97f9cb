import { RelayError } from "../../../domain/errors.ts";
import type { JobKind, JobSubmission, Lane } from "../../../domain/job.ts";
import type { PipelineInputs } from "../../../domain/pipeline.ts";
import { handedOnEnvironment } from "../../../execution/environment.ts";
import type { ExitRecord } from "../../../execution/spool-records.ts";
import type { Clock } from "../../../lib/clock.ts";
import { runSiteCommand } from "../../../scheduler/site-command.ts";
import type { Schedulers } from "../allocation/schedulers.ts";
import { commandEngine } from "./command.ts";
import { type Engine, type EngineAround, type EngineAttempt, type EngineEnd, type Engines, recordedEnd } from "./engine.ts";
import { JarvisEngine } from "./jarvis/engine.ts";
import { JarvisInstallation } from "./jarvis/installation.ts";

/** What the engines of a worker are given. */
export interface EnginesAround {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly envSetup: string | null;
  readonly clock: Clock;
  /** Path or name of JARVIS-CD's program. */
  readonly jarvis: string;
  readonly schedulers: Schedulers;
}

/** The engines that there are. */
export function enginesOf({ environment, envSetup, clock, jarvis, schedulers }: EnginesAround): Engines {
  const site = { program: jarvis, environment: handedOnEnvironment(environment), envSetup, run: runSiteCommand };
  return { command: commandEngine, jarvis: new JarvisEngine(new JarvisInstallation(site, clock), schedulers) };
}

export const kindsOf = (engines: Engines): ReadonlySet<JobKind> => new Set(Object.keys(engines) as JobKind[]);

/**
 * See Engine.admit.
 *
 * @throws RelayError engine_unavailable also for a kind without an engine
 */
export async function admitTo(engines: Engines, submission: JobSubmission): Promise<Lane> {
  return engineOf(engines, submission.kind).admit(submission as never);
}

/** What goes with a pipeline. @throws RelayError engine_unavailable where there is no JARVIS-CD */
export async function pipelineInputs({ jarvis }: Engines, text: string): Promise<PipelineInputs> {
  if (jarvis === undefined) throw unavailable("jarvis");
  return jarvis.inputs(text);
}

/** See Engine.attempt. A job of a kind that has no engine (any more) ends as one that cannot be started. */
export function attemptWith(engines: Engines, around: EngineAround<JobKind>): EngineAttempt {
  const { kind } = around.job;
  const engine = engines[kind];
  return engine === undefined ? new NoEngine(kind) : (engine as Engine<JobKind>).attempt(around);
}

function engineOf<K extends JobKind>(engines: Engines, kind: K): Engine<K> {
  const engine = engines[kind];
  if (engine === undefined) throw unavailable(kind, kindsOf(engines));
  return engine as unknown as Engine<K>;
}

const unavailable = (kind: JobKind, available: ReadonlySet<JobKind> = new Set()): RelayError =>
  new RelayError("engine_unavailable", `this worker runs no jobs of kind ${kind}`, { kind, available: [...available] });

class NoEngine implements EngineAttempt {
  constructor(private readonly kind: JobKind) {}

  async plan(): Promise<never> {
    throw unavailable(this.kind);
  }

  async look(): Promise<void> {}

  async end(exit: ExitRecord): Promise<EngineEnd> {
    return recordedEnd(exit);
  }

  async close(): Promise<void> {}
}
