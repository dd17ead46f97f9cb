import type { Artifact } from "../domain/artifact.ts";
import type { Job, JobKind, JobSubmission, Lane } from "../domain/job.ts";
import type { LinkInfo } from "../domain/link.ts";
import type { LogChunk, LogStream, StreamCapture } from "../domain/log.ts";
import type { PipelineInputs, PipelineQuestion } from "../domain/pipeline.ts";
import type { JarvisExecution, WorkerStatus } from "../domain/views.ts";
import type { Clock } from "../lib/waiting/clock.ts";
import type { AuditReport, QueueStore, RepairReport } from "../queue/store.ts";
import type { InputServices } from "./input-services.ts";
import type { KeyServices } from "./key-services.ts";
import type { SchedulerServices } from "./scheduler-services.ts";

/** How a log stands: its bytes so far, and whether there may be more. */
export interface LogState {
  readonly size_bytes: number;
  /** True when the job has ended and every byte is in size_bytes. */
  readonly complete: boolean;
  /** Accounting of the latest ended attempt; null before. */
  readonly capture: StreamCapture | null;
}

/** The logs of this worker's jobs as byte sequences. */
export interface Logs {
  state(jobId: string, stream: LogStream): Promise<LogState>;
  /** Text from a byte offset; `tail` counts bytes from the end instead. Cuts only between UTF-8 sequences; bytes that are lost are counted. */
  chunk(jobId: string, stream: LogStream, at: { offset: number } | { tail: number }, limit: number): Promise<LogChunk>;
  /** Refuses with log_not_found when not all bytes [offset, end) are there: `offset` and `next_offset` say which the first ones are that are not. */
  check(jobId: string, stream: LogStream, range: { offset: number; end: number }): Promise<void>;
  /** Bytes [offset, end); without `end` they go on until the job has ended. Ends early when the signal is aborted, and without `end` before bytes that are lost. */
  bytes(jobId: string, stream: LogStream, range: { offset: number; end: number | null }, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** The content of artifacts, verified on the way. */
export interface ArtifactContent {
  /** Bytes [start, end) of the artifact; refused with artifact_changed or artifact_unreadable before the first byte where that is known. */
  open(artifact: Artifact, range: { start: number; end: number }): Promise<ReadableStream<Uint8Array>>;
}

/** What the worker's app needs of the process around it. */
export interface WorkerServices {
  readonly cluster: string;
  readonly version: string;
  readonly link: LinkInfo;
  readonly keys: KeyServices;
  readonly clock: Clock;
  readonly store: QueueStore;
  readonly activeJobsMax: number;
  /** Kinds that this worker can run. */
  readonly engines: ReadonlySet<JobKind>;
  /** The lane of a submission of one of these; refuses what its engine does not take, or not now (engine_unavailable). */
  laneFor(submission: JobSubmission): Promise<Lane>;
  /** What goes with a JARVIS-CD pipeline. */
  pipelineInputs(question: PipelineQuestion): Promise<PipelineInputs>;
  readonly logs: Logs;
  readonly artifacts: ArtifactContent;
  readonly inputs: InputServices;
  /** Absent where the cluster has no scheduler. */
  readonly scheduler?: SchedulerServices;
  /** Aborted when the worker drains: waits answer, streams end. */
  readonly draining: AbortSignal;
  /** Refuses with storage_admission_refused when there is no room for another job. */
  admit(): Promise<void>;
  /** Told while a submission waits for its commit, so that its claim can be part of the same one. */
  workExpected(lane: Lane): void;
  /** What stands in the way of a job's current attempt, or of the next one; null where nothing does. */
  obstacle(job: Pick<Job, "job_id" | "state">): string | null;
  /** What JARVIS-CD said last of a job's pipeline; null where nothing is known. */
  jarvis(jobId: string): Promise<JarvisExecution["said"]>;
  status(): Promise<WorkerStatus>;
  /** What is counted, in Prometheus' text format. */
  metrics(): Promise<string>;
  audit(): Promise<AuditReport>;
  repair(): Promise<RepairReport>;
}
