import type * as v from "valibot";
import type { Artifact } from "../domain/artifact.ts";
import type { Attempt } from "../domain/attempt.ts";
import type { Event } from "../domain/event.ts";
import type { Job, JobKind, JobReceipt, JobState, JobSubmissionInput } from "../domain/job.ts";
import type { LinkKeys, PairingCodeMade, Revoked, Rotation } from "../domain/link-keys.ts";
import type { LogChunk, LogSegment, LogStream } from "../domain/log.ts";
import type { PipelineInputs, PipelineQuestion } from "../domain/pipeline.ts";
import type { NewProgressInput, Progress } from "../domain/progress.ts";
import type { NewTaskEventInput, Task, TaskEvent } from "../domain/task.ts";
import type { TraceContext } from "../domain/trace.ts";
import type { JobStatus, JobSummary, JobWaitResult, WorkerStatus } from "../domain/views.ts";
import type { AuditReport, RepairReport } from "../queue/store.ts";
import type { Monitor, QueueListing } from "./answers.ts";
import type { HttpPeer } from "./client/http-peer.ts";
import { LineageClient } from "./client/lineage-client.ts";
import { segment } from "./client/path-segment.ts";
import { SchedulerClient } from "./client/scheduler-client.ts";

type Named<K extends string, T> = Record<K, T[]> & { cursor: number; limit: number; next_cursor: number; total: number };

export interface PageOptions {
  readonly cursor?: number;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface JobListOptions {
  readonly state?: readonly JobState[];
  readonly kind?: JobKind;
  readonly inputs?: boolean;
  readonly id_prefix?: string;
  readonly before?: number;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface QueueOptions extends PageOptions {
  readonly state?: readonly JobState[];
  readonly kind?: JobKind;
  readonly include_terminal?: boolean;
  readonly scan_limit?: number;
}

// What checks an answer is loaded when the request is on its way.
const answers = () => import("./answers.ts");
const records = async () => (await answers()).RECORDS;

/** A page of what `one` gives. */
const page =
  <K extends string, S extends v.GenericSchema>(key: K, one: () => Promise<S>) =>
  async () => {
    const { pageOf } = await records();
    return pageOf(key, await one());
  };

/** Everything that can be asked of one cluster's worker. */
export class ClusterClient {
  readonly http: HttpPeer;
  /** What its jobs use, and who uses what they left. */
  readonly lineage: LineageClient;
  /** Jobs of its scheduler, by that one's ids. */
  readonly scheduler: SchedulerClient;

  /** @param name what the cluster is called here */
  constructor(
    readonly name: string,
    http: HttpPeer,
  ) {
    this.http = http.under("", `the worker of ${name}`);
    this.lineage = new LineageClient(this.http);
    this.scheduler = new SchedulerClient(this.http);
  }

  /** Whether it answers. @throws as any operation, where it does not */
  async alive(signal: AbortSignal): Promise<void> {
    await this.http.json("/healthz", async () => (await answers()).Health, { signal });
  }

  /** @param trace that the job is to belong to */
  submit(submission: JobSubmissionInput, trace: TraceContext | null = null, signal?: AbortSignal): Promise<JobReceipt> {
    const { traceparent, tracestate = null } = trace ?? {};
    const headers = { ...(traceparent === undefined ? {} : { traceparent }), ...(tracestate === null ? {} : { tracestate }) };
    const repeatable = submission.idempotency_key !== undefined;
    return this.http.json("/jobs", async () => (await records()).JobReceipt, {
      method: "POST",
      body: submission,
      headers,
      repeatable,
      signal,
    });
  }

  /** Which settings of a JARVIS-CD pipeline are files of the submitter's. @throws RelayError jarvis_submission_refused, engine_unavailable */
  pipelineInputs(question: PipelineQuestion, signal?: AbortSignal): Promise<PipelineInputs> {
    const request = { method: "POST", body: question, repeatable: true, changes: false, signal };
    return this.http.json("/jarvis/pipeline-inputs", async () => (await records()).PipelineInputs, request);
  }

  job(id: string, signal?: AbortSignal): Promise<Job> {
    return this.http.json(`/jobs/${segment(id)}`, async () => (await records()).Job, { signal });
  }

  status(id: string, signal?: AbortSignal): Promise<JobStatus> {
    return this.http.json(`/jobs/${segment(id)}/status`, async () => (await records()).JobStatus, { signal });
  }

  wait(id: string, options: { timeout_seconds?: number; signal?: AbortSignal } = {}): Promise<JobWaitResult> {
    return this.http.json(`/jobs/${segment(id)}/wait`, async () => (await records()).JobWaitResult, {
      method: "POST",
      query: { timeout_seconds: options.timeout_seconds },
      signal: options.signal,
      repeatable: true,
      changes: false,
      waits: options.timeout_seconds !== 0,
    });
  }

  cancel(id: string, options: { cancel_scheduler_job?: boolean } = {}, signal?: AbortSignal): Promise<Job> {
    const request = { method: "POST", body: options, repeatable: true, signal };
    return this.http.json(`/jobs/${segment(id)}/cancel`, async () => (await records()).Job, request);
  }

  jobs({ signal, ...query }: JobListOptions = {}): Promise<{ jobs: JobSummary[]; next_before: number | null }> {
    return this.http.json("/jobs", async () => (await answers()).JobList, { query, signal });
  }

  queue(options: QueueOptions = {}): Promise<QueueListing> {
    const { signal, ...query } = options;
    return this.http.json("/queue", async () => (await answers()).QueueListing, { query, signal });
  }

  events(id: string, { signal, ...query }: PageOptions = {}): Promise<Named<"events", Event>> {
    return this.http.json(`/jobs/${segment(id)}/events`, page("events", eventSchema), { query, signal });
  }

  /**
   * Events from `cursor` on, as they are committed. Ends by itself after the job's last event; ends early (without an
   * error) when the connection is closed, so callers go on from the last seq they saw.
   *
   * @throws RelayError answer_malformed, and as any operation
   */
  async *eventStream(id: string, options: PageOptions = {}): AsyncGenerator<Event, "terminal" | "closed"> {
    const check = await this.http.checker(eventSchema);
    const request = { query: { cursor: options.cursor }, signal: options.signal, waits: true };
    const messages = this.http.messages(`/jobs/${segment(id)}/events/sse`, request);
    for await (const { event, data } of messages) {
      if (event === "terminal") return "terminal";
      yield check(data);
    }
    return "closed";
  }

  /** The status document with a page of events. */
  monitor(id: string, { signal, ...query }: PageOptions = {}): Promise<Monitor> {
    return this.http.json(`/jobs/${segment(id)}/monitor`, async () => (await answers()).Monitor, { query, signal });
  }

  attempts(id: string, { signal, ...query }: PageOptions = {}): Promise<Named<"attempts", Attempt>> {
    const attempt = async () => (await records()).Attempt;
    return this.http.json(`/jobs/${segment(id)}/attempts`, page("attempts", attempt), { query, signal });
  }

  tasks(id: string, { signal, ...query }: PageOptions = {}): Promise<Named<"tasks", Task>> {
    const one = async () => (await records()).Task;
    return this.http.json(`/jobs/${segment(id)}/tasks`, page("tasks", one), { query, signal });
  }

  taskEvents(taskId: string, { signal, ...query }: PageOptions = {}): Promise<Named<"events", TaskEvent>> {
    const one = async () => (await records()).TaskEvent;
    return this.http.json(`/tasks/${segment(taskId)}/events`, page("events", one), { query, signal });
  }

  recordTaskEvent(taskId: string, event: NewTaskEventInput, signal?: AbortSignal): Promise<TaskEvent> {
    const request = { method: "POST", body: event, signal };
    return this.http.json(`/tasks/${segment(taskId)}/events`, async () => (await records()).TaskEvent, request);
  }

  progress(id: string, { signal, ...query }: PageOptions = {}): Promise<Named<"progress", Progress>> {
    const one = async () => (await records()).Progress;
    return this.http.json(`/jobs/${segment(id)}/progress`, page("progress", one), { query, signal });
  }

  recordProgress(id: string, report: NewProgressInput, signal?: AbortSignal): Promise<Progress> {
    const request = { method: "POST", body: report, signal };
    return this.http.json(`/jobs/${segment(id)}/progress`, async () => (await records()).Progress, request);
  }

  artifacts(id: string, { signal, ...query }: PageOptions = {}): Promise<Named<"artifacts", Artifact>> {
    const one = async () => (await records()).Artifact;
    return this.http.json(`/jobs/${segment(id)}/artifacts`, page("artifacts", one), { query, signal });
  }

  artifact(artifactId: string, signal?: AbortSignal): Promise<Artifact> {
    return this.http.json(`/artifacts/${segment(artifactId)}`, async () => (await records()).Artifact, { signal });
  }

  /** The bytes of an artifact, from `offset` on, at most `limit`. The body is a stream; its SHA-256 is the ETag. @throws RelayError range_not_satisfiable behind the end */
  artifactContent(artifactId: string, options: { offset?: number; limit?: number; signal?: AbortSignal } = {}): Promise<Response> {
    const { offset = 0, limit } = options;
    const last = limit === undefined ? "" : offset + limit - 1;
    return this.http.send(`/artifacts/${segment(artifactId)}/content`, {
      headers: offset > 0 || limit !== undefined ? { range: `bytes=${offset}-${last}` } : {},
      signal: options.signal,
    });
  }

  log(
    id: string,
    stream: LogStream,
    { signal, ...query }: { offset?: number; limit?: number; tail?: number; signal?: AbortSignal } = {},
  ): Promise<LogChunk> {
    return this.http.json(`/jobs/${segment(id)}/logs/${stream}`, async () => (await records()).LogChunk, { query, signal });
  }

  /** Where the output of one attempt lies in the job's logs. @throws RelayError not_found where there is no such attempt */
  async attemptLogs(id: string, attempt: number): Promise<LogSegment[]> {
    return (await this.http.json(`/jobs/${segment(id)}/attempts/${attempt}/logs`, async () => (await answers()).AttemptLogs)).segments;
  }

  /** The bytes of a log from `offset` on; with `follow` the body goes on until the job has ended. */
  logContent(
    id: string,
    stream: LogStream,
    options: { offset?: number; tail?: number; follow?: boolean; signal?: AbortSignal } = {},
  ): Promise<Response> {
    const { signal, ...query } = options;
    return this.http.send(`/jobs/${segment(id)}/logs/${stream}/content`, { query, signal, waits: options.follow === true });
  }

  /** Bytes of a log from `offset` on, at most `limit`. @throws RelayError range_not_satisfiable behind the end, log_not_found */
  async logPiece(id: string, stream: LogStream, offset: number, limit: number, signal?: AbortSignal): Promise<Uint8Array> {
    const headers = { range: `bytes=${offset}-${offset + limit - 1}` };
    const response = await this.http.send(`/jobs/${segment(id)}/logs/${stream}/content`, { headers, signal });
    return new Uint8Array(await response.arrayBuffer());
  }

  workers(signal?: AbortSignal): Promise<{ workers: WorkerStatus[]; worker_count: number }> {
    return this.http.json("/workers", async () => (await answers()).WorkerList, { signal });
  }

  /** The keys of its own sessions. */
  keys(signal?: AbortSignal): Promise<LinkKeys> {
    return this.http.json("/keys", async () => (await records()).LinkKeys, { signal });
  }

  /** @param key a fingerprint, or a beginning of it. @throws RelayError not_found, usage, state_conflict */
  revokeKey(key: string): Promise<Revoked> {
    return this.http.json("/keys/revoke", async () => (await records()).Revoked, { method: "POST", body: { key } });
  }

  /** @throws RelayError state_conflict */
  rotateHostKey(overlapSeconds: number): Promise<Rotation> {
    const request = { method: "POST", body: { overlap_seconds: overlapSeconds } };
    return this.http.json("/keys/rotate", async () => (await records()).Rotation, request);
  }

  /** The answer holds a secret. @throws RelayError state_conflict where the worker is not at that relay-host */
  makePairingCode(relayHost: string | null, keyTtlSeconds: number | null): Promise<PairingCodeMade> {
    const request = { method: "POST", body: { relay_host: relayHost, key_ttl_seconds: keyTtlSeconds } };
    return this.http.json("/pairings", async () => (await records()).PairingCodeMade, request);
  }

  /** Check the whole queue; changes nothing. */
  audit(): Promise<AuditReport> {
    const request = { method: "POST", repeatable: true, changes: false };
    return this.http.json("/queue/audit", async () => (await answers()).Audit, request);
  }

  /** Put right what an audit can prove. */
  repair(): Promise<RepairReport> {
    return this.http.json("/queue/repair", async () => (await answers()).Repair, { method: "POST", repeatable: true });
  }
}

const eventSchema = async () => (await records()).Event;
