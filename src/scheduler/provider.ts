import type { SchedulerName, SchedulerRequest, SchedulerStatus } from "../domain/scheduler.ts";

/** A batch script that is ready to be submitted. */
export interface BatchJob {
  readonly request: SchedulerRequest;
  readonly marker: string;
  /** Path of the script, on a file system that the compute nodes see. */
  readonly script: string;
  /** What the scheduler writes of the batch script's own output. */
  readonly output: string;
  readonly workdir: string;
}

/** A batch script, of what a request says. */
export interface BatchScript {
  readonly text: string;
  /** What the job's name is to begin with: the request's word, or the script's where it fits; null for neither. */
  readonly name: string | null;
  /** Directives that were left out because the relay sets it itself, or the request does and both would be refused. */
  readonly removed: readonly string[];
  /** Variables that options and directives give the job with their values: a job has the environment that it was told, and not the batch script's. */
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * What became of a submit command. `accepted`: it named the job. `refused`: it ended by itself with a failure. `doubt`: it was killed, hung, or ended
 * well without naming a job: it may have been accepted.
 */
export type SubmitOutcome =
  | { readonly kind: "accepted"; readonly native: NativeJob; readonly said: string }
  | { readonly kind: "refused"; readonly said: string }
  | { readonly kind: "doubt"; readonly said: string };

/** A job by the scheduler's own name for it. `cluster` where one command reaches several. */
export interface NativeJob {
  readonly id: string;
  readonly cluster: string | null;
}

/** A job's id with its cluster behind it, where it has one: `123`, `123;alpha`. */
export const nativeKey = ({ id, cluster }: NativeJob): string => (cluster === null ? id : `${id};${cluster}`);

/** What the sources said when they were asked for a marker. */
export interface MarkerFinding {
  readonly found: readonly NativeJob[];
  /** Whether every one of them answered. */
  readonly complete: boolean;
  /** Whether the scheduler itself did, which knows what is active, whatever became of its accounts; true where there is no command that asks it. */
  readonly reached: boolean;
  /** Why not, for people. */
  readonly said: string | null;
}

/** One source's part in an observation. */
export interface Observation {
  /** By `nativeKey`; one that is missing here was not asked for, or nothing is known yet because a source failed: see `failures`. */
  readonly statuses: ReadonlyMap<string, SchedulerStatus>;
  /** Sources that did not answer, with what they said. */
  readonly failures: ReadonlyMap<string, string>;
}

/** `asked`: the scheduler took the request; what came of it, only an observation says. `refused`: it did not, in its own words. */
export type CancelOutcome = { readonly kind: "asked" | "refused" | "doubt"; readonly said: string };

/** Where a marker is looked for. */
export interface Lookup {
  /** When the submission was intended, at the latest; milliseconds since the epoch. Left out: 30 days ago. */
  readonly since?: number;
  /** What `clusters` says of the request; left out: the one that the commands speak with by themselves. */
  readonly clusters?: readonly string[];
}

/** How an observation is to be made. */
export interface Look {
  /** Sources, as `Observation.failures` names them, that are not to be asked this time: they count as having not answered. */
  readonly without?: ReadonlySet<string>;
  /** Whether places in the queue are wanted: the source of what is active is then asked for everybody's jobs. */
  readonly positions?: boolean;
}

/** What a site has. */
export interface Capabilities {
  readonly version: string | null;
  /** Whether jobs can be submitted from here. */
  readonly submits: boolean;
  /** The scheduler's name for itself; null where it has none. */
  readonly clusterName: string | null;
  /** Whether what has ended can still be asked for; null where nobody could say. */
  readonly accounting: boolean | null;
  /** Sources that are there, in the order in which they are asked. */
  readonly sources: readonly string[];
}

/** One kind of scheduler. Nothing here throws for what a scheduler does; a fault of ours does. */
export interface SchedulerProvider {
  readonly name: SchedulerName;
  /** @throws RelayError scheduler_unavailable when its commands are not there */
  probe(): Promise<Capabilities>;
  /**
   * The batch script: the user's directives, then `lines`.
   *
   * @throws RelayError job_submission_refused for what cannot be honoured
   */
  script(request: SchedulerRequest, userScript: string | null, lines: readonly string[]): BatchScript;
  /** Run the submit command once. */
  submit(job: BatchJob): Promise<SubmitOutcome>;
  /** A job's id as a person writes it, or a submit command prints it; null for what is none (a step's, too). */
  native(text: string): NativeJob | null;
  /** The clusters that the options and directives of a request name, in order; empty where they name none. */
  clusters(request: SchedulerRequest, userScript: string | null): readonly string[];
  /** Ask every source for jobs of that name, of whatever state. */
  find(marker: string, lookup?: Lookup): Promise<MarkerFinding>;
  /** Ask for all of them; each source at most once (in calls of at most 1,000 ids). */
  observe(jobs: readonly NativeJob[], look?: Look): Promise<Observation>;
  /** Send TERM to the batch script, so that the shim ends its job in order. Nothing is sent where the id has not, or may not have, that name. */
  terminate(job: NativeJob, marker: string): Promise<CancelOutcome>;
  /** The scheduler's own cancel, of exactly this job, and only while it has that name. */
  cancel(job: NativeJob, marker: string): Promise<CancelOutcome>;
}
