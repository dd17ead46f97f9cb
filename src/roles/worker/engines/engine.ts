import type { ArtifactKind } from "../../../domain/artifact.ts";
import type { NewEvent } from "../../../domain/event.ts";
import type { Job, JobKind, JobSubmission, Lane, Outcome } from "../../../domain/job.ts";
import type { PipelineInputs, PipelineQuestion } from "../../../domain/pipeline.ts";
import type { JarvisExecution } from "../../../domain/views.ts";
import type { LaunchedShim } from "../../../execution/launcher.ts";
import type { ExitRecord } from "../../../execution/spool-records.ts";
import type { Clock } from "../../../lib/waiting/clock.ts";
import type { Fence, QueueStore } from "../../../queue/store.ts";

/** A job of one kind. */
export type JobOf<K extends JobKind> = Extract<Job, { kind: K }>;
export type SubmissionOf<K extends JobKind> = Extract<JobSubmission, { kind: K }>;

/**
 * How jobs of one kind run (docs/architecture.md, Engines). One object for a worker; it lives as long as the worker and holds nothing of a
 * single job.
 */
export interface Engine<K extends JobKind> {
  readonly kind: K;
  /**
   * Asked for each submission before it is recorded. May take a moment, and asks nothing that a desktop would have to answer.
   *
   * @returns the lane that the job waits in
   * @throws RelayError engine_unavailable, with why in `cause`, where it cannot run now; a refusal where it never will
   */
  admit(submission: SubmissionOf<K>): Promise<Lane>;
  /** Everything of it that one attempt needs. Starts nothing and reads nothing yet. */
  attempt(around: EngineAround<K>): EngineAttempt;
}

/** The engines of a worker, by kind. A kind that is not in here has none. */
export type Engines = { readonly [K in JobKind]?: Engine<K> } & { readonly jarvis?: PipelineReader };

/** What is asked of a pipeline before it is submitted. */
export interface PipelineReader {
  /** @throws RelayError jarvis_submission_refused, engine_unavailable */
  inputs(question: PipelineQuestion): Promise<PipelineInputs>;
}

/** What an engine may use of the worker around it. */
export interface EngineContext {
  readonly cluster: string;
  /** The cluster's spool. */
  readonly spoolDir: string;
  /** The spool of jobs in allocations, which compute nodes see; null where that is the same. */
  readonly sharedSpoolDir: string | null;
  /** The environment that jobs' allow-list is taken from. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  readonly executableDir: string | null;
  /** The relay's executable with leading arguments, absolute. */
  readonly command: readonly string[];
  /** Shell text that the cluster's configuration puts before every job; null for none. */
  readonly envSetup: string | null;
  readonly store: QueueStore;
  readonly clock: Clock;
  readonly limits: { readonly cancelGraceSeconds: number };
  /** Remember a failure that the worker survived, for its status. */
  laneFailed(where: string, error: unknown): void;
}

/** The attempt that an engine works on, and what it may use. */
export interface EngineAround<K extends JobKind> {
  readonly context: EngineContext;
  readonly job: JobOf<K>;
  readonly fence: Fence;
  /** The attempt's directory. */
  readonly directory: string;
  /** Whether an earlier worker had claimed it. */
  readonly recovered: boolean;
  /** Have `look` and `end` asked at once. */
  readonly wake: () => void;
}

/** What the shim is to run. The worker adds what every job gets: its environment's allow-list, quota, setup text, mark. */
export interface EnginePlan {
  readonly argv: readonly string[];
  /** Text of a script job, whose path `scriptPath` gives to argv. */
  readonly script?: string;
  /** Further files of the attempt's directory, by name; none of FILES of spool-records.ts. */
  readonly files?: Readonly<Record<string, string>>;
  /** Variables over the allow-list. */
  readonly env: Readonly<Record<string, string>>;
  /** Null is the home directory. */
  readonly workdir: string | null;
  readonly login: boolean;
  readonly timeout_seconds: number | null;
  /** As in AttemptSpec. */
  readonly first_alone_seconds?: number;
}

/** A document that an attempt leaves: an artifact whose content is this text. */
export interface EngineDocument {
  readonly kind: ArtifactKind;
  readonly name: string;
  readonly text: string;
}

/** Where files lie that the job left, and which of them are its outputs. */
export interface OutputPlace {
  /** Null is the working directory of the attempt. Another one is not compared with what it was at the start. */
  readonly directory: string | null;
  /** As in CommandSpec.outputs. */
  readonly patterns: readonly string[];
  /** Whether a pattern that matches nothing makes a completed attempt `output_missing`. */
  readonly required: boolean;
}

/** What the end of an attempt brings. */
export interface EngineEnd {
  readonly outcome: Outcome;
  readonly outputs: OutputPlace;
  readonly documents: readonly EngineDocument[];
  readonly events: readonly NewEvent[];
  /** Whether the attempt's job of a scheduler is left to go on. */
  readonly retain?: boolean;
  /** When it ended, where that is not when its shim did. */
  readonly ended_at?: string;
  /** Done when the way to the attempt's documents is flushed; left out where its shim has seen to that (docs/spool.md, Kept servers). */
  readonly way?: () => Promise<void>;
  /** What the logs hold where more was written to them than by the shim; left out: what the shim recorded. */
  readonly streams?: ExitRecord["streams"];
}

/** The end that the shim recorded, where an engine has nothing to add. */
export const recordedEnd = ({ outcome }: ExitRecord, patterns: readonly string[] = []): EngineEnd => ({
  outcome,
  outputs: { directory: null, patterns, required: true },
  documents: [],
  events: [],
});

/** One attempt, from its claim (or its recovery) to its end. */
export interface EngineAttempt {
  /**
   * May be asked again until the shim is told.
   *
   * @throws RelayError what no further try would change: the attempt ends as spawn_failed. What may pass (patience.ts) is tried again
   */
  plan(): Promise<EnginePlan>;
  /**
   * Hand the attempt, whose directory is ready, to a shim of the engine's own. Left out, or null: to one of the worker's.
   *
   * @throws when there was none to start
   */
  launch?(): Promise<LaunchedShim> | null;
  /** For so many milliseconds after its claim its start may wait, to be recorded with its end. 0 unless given. */
  readonly briefMs?: number;
  /**
   * Asked about once a second from when a shim has claimed the attempt until that has ended. Whatever takes longer goes on by itself and calls `wake`.
   *
   * @throws what the worker tries again, as every step of an attempt
   */
  look(): Promise<void>;
  /**
   * How the attempt ended; null while it has not, though its shim has: then it is asked again, once a second and at every wake. A job that a shim never
   * started (`started_at` null) ends as its record says.
   *
   * @param exit what the shim recorded, or the worker in its place
   * @param canceling whether somebody asked for the job's end by now
   */
  end(exit: ExitRecord, canceling: boolean): Promise<EngineEnd | null>;
  /** What JARVIS-CD said last of a pipeline's run; null before that, left out by other engines. */
  readonly said?: JarvisExecution["said"];
  /** This worker lets go of the attempt, ended or not; its end, where there was one, is on record. What the engine started for itself is ended; the job's processes are left alone. */
  close(): Promise<void>;
}
