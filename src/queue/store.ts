import type { Artifact, NewArtifact } from "../domain/artifact.ts";
import type { Attempt, ProcessIdentity } from "../domain/attempt.ts";
import type { EmitLine } from "../domain/emit-line.ts";
import type { Capacity, Endpoint } from "../domain/endpoint.ts";
import type { Event, EventType, NewEvent } from "../domain/event.ts";
import type { Job, JobKind, JobState, JobSubmission, Lane, Outcome } from "../domain/job.ts";
import type { Lease } from "../domain/lease.ts";
import type { UsedArtifactRef } from "../domain/lineage.ts";
import type { LogSegment, LogStream, StreamCapture } from "../domain/log.ts";
import type { Page } from "../domain/page.ts";
import type { NewProgress, Progress } from "../domain/progress.ts";
import type { SchedulerJob, SchedulerName, SchedulerStatus } from "../domain/scheduler.ts";
import type { NewTaskEvent, Task, TaskEvent } from "../domain/task.ts";
import type { TraceContext } from "../domain/trace.ts";
import type { NewTransform, TransformRef } from "../domain/transform.ts";
import type { JobSummary } from "../domain/views.ts";

/** Names the attempt that a write is about. A stale number is refused with attempt_fenced. */
export interface Fence {
  readonly job_id: string;
  readonly attempt: number;
}

/** A claimed attempt, ready to be started. */
export interface Claim {
  readonly job: Job;
  readonly attempt: Attempt;
  readonly lease: Lease;
}

/** What one look at an attempt's files brought; all of it is committed at once, with the new positions. */
export interface Ingest {
  /** New bytes of a stream, in order. `text` where they are few and UTF-8. */
  readonly deltas: readonly { readonly stream: LogStream; readonly bytes: number; readonly text: string | null }[];
  readonly truncations: readonly { readonly stream: LogStream; readonly capture: StreamCapture }[];
  readonly emits: readonly {
    readonly file: string;
    /** Where this batch was read from; a mismatch with the stored position is refused with state_conflict. */
    readonly offset: number;
    readonly next_offset: number;
    readonly lines: readonly EmitLine[];
  }[];
  readonly notices?: readonly Notice[];
}

/** An event that an attempt gets once, however often it is told, by whichever worker. */
export interface Notice {
  /** What it is about, unique among the attempt's events of this type; becomes the payload's member `about`, beside `attempt`. */
  readonly about: string;
  readonly event: NewEvent;
}

/** That an attempt runs, and as what. */
export interface Started {
  readonly shim: ProcessIdentity;
  readonly process: ProcessIdentity;
  readonly started_at: string;
}

/** Everything that the end of an attempt brings. */
export interface Settlement {
  /** Of an attempt whose start was not recorded by itself: as startAttempt, in the same commit. */
  readonly started?: Started;
  readonly outcome: Outcome;
  readonly ended_at: string;
  readonly captures: Readonly<Record<LogStream, StreamCapture>>;
  readonly artifacts: readonly NewArtifact[];
  /** Events besides those that the transition itself writes, for example execution.timeout. */
  readonly events: readonly NewEvent[];
}

/** What became of an intended submission. `message` is why nobody can tell, in part of a sentence. */
export type SubmissionFinding =
  | { readonly kind: "submitted"; readonly native_id: string; readonly scheduler_cluster: string | null }
  | { readonly kind: "unresolved"; readonly message: string }
  | { readonly kind: "refused" };

/** A staged file whose content is there. */
export type InputFile = Omit<NewArtifact, "artifact_id" | "kind">;

/** An ingest on record: the job that stands for it, and its artifact. */
export interface RecordedInput {
  readonly job: Job;
  readonly artifact: Artifact;
  /** Whether the key had already brought it about. */
  readonly existing: boolean;
}

/** Pages of events, task events, progress and artifacts hold at most `limit` entries and about 4 MiB of text, but at least one where there is one. */
export interface PageRequest {
  readonly cursor: number;
  readonly limit: number;
  /** Bytes of text that a page of events may hold, but for its first entry; as on other pages where it is absent. */
  readonly maxBytes?: number;
}

export interface JobFilter {
  readonly states?: readonly JobState[];
  readonly kind?: JobKind;
  /** Leave out the jobs that stand for staged files. */
  readonly withoutInputs?: boolean;
  readonly cluster?: string;
  /** What the id begins with. Jobs are then found by the index of ids, however many there are. */
  readonly idPrefix?: string;
}

/** Queue listing: filters apply inside a window over the submission order. */
export interface QueueWindow {
  readonly jobs: readonly JobSummary[];
  /** Where the next window starts; null at the end. */
  readonly next_cursor: number | null;
  /** Jobs in the queue in all, whatever the filters. */
  readonly total: number;
  /** True when the window ended because scan_limit jobs had been looked at. */
  readonly scan_truncated: boolean;
}

/** The newest report of each label, and whether some were left out. */
export interface LatestProgress {
  readonly items: readonly Progress[];
  readonly truncated: boolean;
}

export interface QueueStats {
  readonly queued_by_kind: Readonly<Partial<Record<JobKind, number>>>;
  readonly leases_by_kind: Readonly<Partial<Record<JobKind, number>>>;
  readonly leases_by_lane: Readonly<Partial<Record<Lane, number>>>;
  readonly active: number;
  readonly quarantined: number;
}

/** What is known of a job whose record cannot be read. */
export interface UnreadableJob {
  /** The attempt that is claimed or running; null where none is. */
  readonly attempt: number | null;
  readonly shim: ProcessIdentity | null;
  readonly process: ProcessIdentity | null;
  /** Of that attempt, without what was last observed of it; null where none was intended. */
  readonly scheduler_job: SchedulerJob | null;
}

/** How much of the queue an audit or a repair looks at. */
export interface CheckDepth {
  /**
   * Also the file's own structure: pages, indexes, rows that refer to nothing. Reads the whole file in one go, and every other call waits
   * for seconds where it is large; for a queue that nobody else uses.
   */
  readonly deep: boolean;
}

/** One thing that audit found wrong. */
export interface Finding {
  readonly check: string;
  readonly subject: string;
  readonly detail: string;
  /** Whether repair can put it right. */
  readonly repairable: boolean;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly checked: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  /** True when there were more findings than are listed. */
  readonly truncated: boolean;
}

export interface RepairReport {
  readonly repaired: readonly Finding[];
  readonly remaining: readonly Finding[];
  readonly truncated: boolean;
}

/**
 * `job:<id>`: something about the job was committed. `ready:<lane>`: a job was submitted to the lane. `queue`: something else may have become
 * claimable or cancelable.
 */
export type Topic = `job:${string}` | `ready:${Lane}` | "queue";

/**
 * The durable queue of one cluster. Every promise settles after the commit that holds its result. Failures are
 * RelayErrors: *_not_found for unknown ids, attempt_fenced for stale fences, state_conflict for a change that the
 * transition table does not have, storage_admission_refused when the disk is full, queue_corrupt for a record that cannot be read,
 * shutting_down after close.
 */
export interface QueueStore {
  /**
   * Admit a job, or return the one that the key already brought about. Refuses another body under the same key
   * (job_submission_conflict) and more than the active-job bound (active_job_capacity_reached). An edge is recorded for each artifact that
   * it pins; refused is one that is not there (artifact_not_found), another session's (resource_ownership_refused), and one with another
   * digest or as many consumers as it may have (job_submission_refused).
   */
  submit(submission: JobSubmission, lane: Lane, trace?: TraceContext | null): Promise<{ readonly job: Job; readonly existing: boolean }>;
  /**
   * What submit would find for the key, without admitting anything: the job, or null for a submission without a key or with a new one.
   * Refused like submit for another body (job_submission_conflict).
   */
  submitted(submission: JobSubmission): Promise<Job | null>;

  job(jobId: string): Promise<Job>;
  /**
   * Newest first; `before` is the sequence below which to go on, null for the newest. A bounded number of jobs is looked at: as long as
   * next_before is set there may be more, however few were found.
   */
  recentJobs(filter: JobFilter, before: number | null, limit: number): Promise<{ jobs: readonly JobSummary[]; next_before: number | null }>;
  queueWindow(filter: JobFilter, page: PageRequest, scanLimit: number): Promise<QueueWindow>;
  /** Queued jobs of the same lane that come before it; null when it is not queued. */
  jobsAhead(jobId: string): Promise<number | null>;
  stats(): Promise<QueueStats>;

  /** The next eligible job as a claimed attempt, or null when nothing is eligible. */
  claim(endpointId: string, capacity: Capacity): Promise<Claim | null>;
  /** Milliseconds until the next delayed retry becomes eligible; null when none is delayed. */
  nextDelay(): Promise<number | null>;
  /** claimed -> running. Repeating it with the same identities changes nothing; with others it is refused (state_conflict). */
  startAttempt(fence: Fence, started: Started): Promise<Job>;
  /** claimed -> void; the job is queued again, or canceled where that was asked for. Refused for an attempt that runs, or may be at a scheduler (state_conflict). */
  voidAttempt(fence: Fence, reason: string): Promise<Job>;
  /**
   * The attempt ends; the job follows by domain/retry.ts. Repeating it after the commit is refused (attempt_fenced). Kept bytes that had
   * no delta event get one; a truncation that had none gets one. Where fewer bytes are said to be kept than had been ingested, those
   * ingested count, and the stream is not complete. A quarantine is over.
   */
  settle(fence: Fence, settlement: Settlement): Promise<Job>;
  /**
   * All of the batch or nothing. A truncation or notice that is on record already is passed over; a line whose record would be too large becomes an
   * emit.refused event.
   */
  ingest(fence: Fence, batch: Ingest): Promise<void>;
  /** Positions up to which the attempt's event files were ingested. */
  emitOffsets(fence: Fence): Promise<ReadonlyMap<string, number>>;
  segments(jobId: string): Promise<readonly LogSegment[]>;
  attempt(jobId: string, attempt?: number): Promise<Attempt | null>;
  attempts(jobId: string, page: PageRequest): Promise<Page<Attempt>>;
  /** Attempts that are claimed or running, with their jobs: what a starting worker has to recover. Unreadable ones are quarantined and left out. */
  openAttempts(): Promise<readonly { readonly job: Job; readonly attempt: Attempt }[]>;
  /** Give the lease of an open attempt to another endpoint, which must be registered. */
  takeOverLease(fence: Fence, endpointId: string): Promise<Lease>;

  /**
   * On record before the submit command runs, with the task that stands for it. Repeating it with the same marker changes nothing; another one is a
   * state_conflict.
   */
  intendSubmission(fence: Fence, intent: { readonly provider: SchedulerName; readonly marker: string }): Promise<SchedulerJob>;
  /** intended -> submitted | unresolved | refused, unresolved -> submitted | refused; any other change is a state_conflict, and none is none. */
  recordSubmission(fence: Fence, finding: SubmissionFinding): Promise<SchedulerJob>;
  /**
   * The newest observation of what is submitted, with an event where the phase has changed, and the state of its task. One that is older than the last, or says
   * nothing new within a minute of it, changes nothing. An attempt that is over is observed until its job of the scheduler has ended (then attempt_fenced).
   */
  observeScheduler(fence: Fence, status: SchedulerStatus): Promise<SchedulerJob>;
  /**
   * Settle as canceled and leave the scheduler's job to go on (`retained`), in one commit. Refused (state_conflict) unless it is submitted, and the job was asked to be
   * canceled without it: somebody may have asked for that one, too, meanwhile.
   */
  retainSchedulerJob(fence: Fence, settlement: Settlement): Promise<Job>;
  /** In the order of attempts; `page.cursor` is an attempt's number. */
  schedulerJobs(jobId: string, page: PageRequest): Promise<Page<SchedulerJob>>;
  /** The newest one of that id, of any scheduler where `provider` is null. */
  schedulerJobOf(provider: SchedulerName | null, nativeId: string): Promise<SchedulerJob | null>;
  /**
   * What may still be going on at a scheduler, in the order of submission: of open attempts whatever is not refused, of others what is submitted and has not
   * ended, as long as a source knows it.
   */
  openSchedulerJobs(): Promise<readonly SchedulerJob[]>;

  /** Queued: canceled at once. Leased or running: a request. Ended: unchanged. */
  requestCancel(jobId: string, options: { readonly cancel_scheduler: boolean }): Promise<Job>;
  /** What is out of a job whose record cannot be read; null where it can, or the job has ended. */
  unreadable(jobId: string): Promise<UnreadableJob | null>;
  /** End such a job, of which nothing runs any more. Refused for every other (state_conflict). */
  endUnreadable(jobId: string, as: "failed" | "canceled", message: string): Promise<void>;
  /** Keep a record out of the lanes. */
  quarantine(jobId: string, reason: string): Promise<void>;
  /** Jobs that wait for a cancel acknowledgement. */
  cancelRequests(): Promise<readonly Fence[]>;

  appendEvents(jobId: string, events: readonly NewEvent[]): Promise<void>;
  events(jobId: string, page: PageRequest): Promise<Page<Event>>;
  /** The newest event of that type whose payload has a member of that name (null is none), of the job's last 10,000 events; null where there is none. */
  latestEvent(jobId: string, type: EventType, member: string): Promise<Event | null>;
  tasks(jobId: string, page: PageRequest): Promise<Page<Task>>;
  task(taskId: string): Promise<Task>;
  recordTaskEvent(taskId: string, event: NewTaskEvent): Promise<TaskEvent>;
  taskEvents(taskId: string, page: PageRequest): Promise<Page<TaskEvent>>;
  recordProgress(jobId: string, progress: NewProgress): Promise<Progress>;
  progress(jobId: string, page: PageRequest): Promise<Page<Progress>>;
  /** The newest report of each label, at most 100 labels and 1 MiB of text; reports that do not fit into that are left out. */
  latestProgress(jobId: string): Promise<LatestProgress>;
  artifacts(jobId: string, page: PageRequest): Promise<Page<Artifact>>;
  artifact(artifactId: string): Promise<Artifact>;

  /**
   * Admit an ingest (a submission of kind input_ingest) as a job that has succeeded, with its artifact, or return what the key already brought about.
   * Refused as submit refuses; how many jobs are active does not matter.
   */
  recordInput(submission: JobSubmission, file: InputFile): Promise<RecordedInput>;
  /** Which of these digests an input on record has. */
  namedInputs(digests: readonly string[]): Promise<ReadonlySet<string>>;

  /** What the job uses, in the order of edges; `page.cursor` is an edge's sequence. */
  usedArtifacts(jobId: string, page: PageRequest): Promise<Page<UsedArtifactRef>>;
  /** Who uses the artifact. */
  usedBy(artifactId: string, page: PageRequest): Promise<Page<UsedArtifactRef>>;
  /** Jobs that use an artifact of this one, which cannot be removed before them. */
  consumersOf(jobId: string, limit: number): Promise<{ readonly job_ids: readonly string[]; readonly truncated: boolean }>;
  /**
   * Record what the job did to its inputs, once. The same again is answered with what is recorded. Refuses another one (transform_conflict),
   * and evidence that is not of exactly what the job pins (transform_refused).
   */
  recordTransform(jobId: string, transform: NewTransform): Promise<{ readonly transform: TransformRef; readonly existing: boolean }>;
  /** Null until there is one. */
  transform(jobId: string): Promise<TransformRef | null>;

  registerEndpoint(endpoint: Endpoint): Promise<void>;
  /** Marks the endpoint as alive, renews its leases, and returns those it still holds. */
  heartbeat(endpointId: string, laneLastError: string | null): Promise<readonly Lease[]>;
  stopEndpoint(endpointId: string): Promise<void>;
  endpoints(page: PageRequest): Promise<Page<Endpoint>>;

  /** Call `listener` after each commit that touched the topic. Returns the way to stop that. */
  subscribe(topic: Topic, listener: () => void): () => void;

  /** Check the records of every job; changes nothing. Other calls go on meanwhile, unless it is deep, which it is not by default. */
  audit(depth?: CheckDepth): Promise<AuditReport>;
  /** Put right what can be derived of what an audit of this depth finds, and list the rest. */
  repair(depth?: CheckDepth): Promise<RepairReport>;

  /** Commits what is queued and closes the file. Calling it twice is harmless; afterwards every call is refused. */
  close(): Promise<void>;
}
