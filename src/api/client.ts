import type { Artifact } from "../domain/artifact.ts";
import type { Attempt } from "../domain/attempt.ts";
import { isErrorCode, RelayError } from "../domain/errors.ts";
import type { Event } from "../domain/event.ts";
import type { Job, JobKind, JobReceipt, JobState, JobSubmissionInput } from "../domain/job.ts";
import type { LinkKeys, PairingCodeMade, Revoked, Rotation } from "../domain/link-keys.ts";
import type { LogChunk, LogSegment, LogStream } from "../domain/log.ts";
import type { NewProgressInput, Progress } from "../domain/progress.ts";
import type { NewTaskEventInput, Task, TaskEvent } from "../domain/task.ts";
import type { TraceContext } from "../domain/trace.ts";
import type { JobStatus, JobSummary, JobWaitResult, WorkerStatus } from "../domain/views.ts";
import type { AuditReport, RepairReport } from "../queue/store.ts";
import { jsonAnswer } from "./json-answer.ts";
import { LineageClient } from "./lineage-client.ts";
import { segment } from "./path-segment.ts";
import { readSse, type SseMessage } from "./sse-reader.ts";
import { Unproven } from "./unproven.ts";

/** Where an app listens. */
export type Address =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly url: string; readonly token: string }
  /** One that its user vouches for: it is told the token without proof of who it is, but what TLS gives. */
  | { readonly kind: "url"; readonly url: string; readonly token: string };

type Named<K extends string, T> = Record<K, T[]> & { cursor: number; limit: number; next_cursor: number; total: number };

/** How a peer is found. A plain address is one that never changes; a door can bring its owner to life and ask to try again. */
export interface Door {
  address(): Address | Promise<Address>;
  /** Sends the requests, where it is not the runtime's own fetch: one that knows no Unix sockets. */
  readonly fetch?: (url: URL, init: RequestInit & { readonly unix?: string }) => Promise<Response>;
  /** Said with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Called when a request got no answer. True: send it once more.
   *
   * @param failure what fetch threw
   * @param repeatable whether sending it twice does no more than sending it once
   */
  reopen(failure: unknown, repeatable: boolean): Promise<boolean>;
  /** How a listener that takes requests and answers none is told from one that takes its time. Absent: all the time is given. */
  readonly liveness?: {
    /** How long a request may be quiet before it is asked, in milliseconds. */
    readonly everyMs: number;
    /** Whether it answers something easy. */
    probe(): Promise<boolean>;
  };
}

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

/** GET /queue: filters apply inside a window over the order of submission. */
export interface QueueList {
  readonly jobs: JobSummary[];
  readonly count: number;
  readonly source_cursor: number;
  readonly source_limit: number;
  readonly source_next_cursor: number | null;
  readonly source_total: number;
  readonly filters_apply_within_source_window: true;
  readonly scan_limit: number;
  readonly scan_truncated: boolean;
  readonly active_job_capacity: number;
}

type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

interface CallOptions {
  readonly method?: string;
  readonly query?: Query;
  /** Bytes go as they are, everything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Whether sending it twice does no more than sending it once. Reads always are. */
  readonly repeatable?: boolean;
}

/** One HTTP conversation partner: builds URLs, sends, turns problems into RelayErrors. */
export class HttpPeer {
  private readonly door: Door;

  constructor(
    address: Address | Door,
    private readonly prefix = "",
  ) {
    this.door = "kind" in address ? { address: () => address, reopen: () => Promise.resolve(false) } : address;
  }

  under(prefix: string): HttpPeer {
    return new HttpPeer(this.door, this.prefix + prefix);
  }

  /** Send a request. The answer is a success, or the call throws the RelayError that its problem document names. */
  async send(path: string, options: CallOptions = {}): Promise<Response> {
    let response: Response;
    try {
      response = await this.attempt(path, options);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      const repeatable = options.repeatable ?? (options.method ?? "GET") === "GET";
      if (!(await this.door.reopen(error, repeatable))) throw unanswered(error);
      response = await this.attempt(path, options).catch((again: unknown) => {
        if (options.signal?.aborted) throw options.signal.reason;
        throw unanswered(again);
      });
    }
    if (response.ok || response.status === 304) return response;
    throw await problemOf(response);
  }

  private async attempt(path: string, options: CallOptions): Promise<Response> {
    const address = await this.door.address();
    const origin = address.kind === "unix" ? "http://relay" : address.url;
    const url = new URL(`${origin}${this.prefix}${path}`);
    for (const [key, value] of Object.entries(options.query ?? {})) {
      if (value === undefined) continue;
      for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(key, String(item));
    }
    const headers: Record<string, string> = { ...this.door.headers, ...options.headers };
    const bytes = options.body instanceof Uint8Array;
    if (options.body !== undefined) headers["content-type"] = bytes ? "application/octet-stream" : "application/json";
    if (address.kind !== "unix") headers["authorization"] = `Bearer ${address.token}`;
    const hung = new AbortController();
    const watch = this.watch(hung);
    const signal = options.signal === undefined ? hung.signal : AbortSignal.any([options.signal, hung.signal]);
    try {
      if (address.kind === "tcp") {
        const { challenge } = await import("./challenge.ts");
        await challenge(address.url, address.token, signal);
      }
      return await (this.door.fetch ?? fetch)(url, {
        method: options.method ?? "GET",
        headers,
        signal,
        // No server of ours sends a client elsewhere.
        redirect: "manual",
        ...(options.body === undefined ? {} : { body: bytes ? options.body : JSON.stringify(options.body) }),
        ...(address.kind === "unix" ? { unix: address.path } : {}),
        // Every peer is on this machine. `false` alone keeps Bun from the proxy of the environment, which would be told the token.
        proxy: false,
        // Waits and streams are quiet for as long as they like; the caller's signal ends them.
        timeout: false,
      } as unknown as RequestInit);
    } catch (error) {
      if (hung.signal.aborted) throw new RelayError("desktop_unavailable", "the local socket takes requests, but does not answer");
      throw error;
    } finally {
      clearInterval(watch);
    }
  }

  /** Look again and again whether the other side lives, until it does not or the interval is cleared. */
  private watch(hung: AbortController): ReturnType<typeof setInterval> | undefined {
    const { liveness } = this.door;
    if (liveness === undefined) return undefined;
    return setInterval(() => {
      const dead = () => hung.abort();
      liveness.probe().then((alive) => (alive ? undefined : dead()), dead);
    }, liveness.everyMs);
  }

  async json<T>(path: string, options: CallOptions = {}): Promise<T> {
    const response = await this.send(path, options);
    try {
      return (await jsonAnswer(response)) as T;
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw new RelayError("link_down", "the answer broke off", {}, undefined, { cause: error });
    }
  }

  /** Messages of an SSE route until it ends or the connection breaks. */
  async *sse(path: string, options: CallOptions = {}): AsyncGenerator<SseMessage> {
    const response = await this.send(path, { ...options, headers: { ...options.headers, accept: "text/event-stream" } });
    if (response.body === null) return;
    try {
      yield* readSse(response.body);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (error instanceof RangeError) throw error;
    }
  }
}

function unanswered(error: unknown): RelayError {
  if (error instanceof RelayError) return error;
  const what = error instanceof Unproven ? error.message : "no answer from the local socket";
  return new RelayError("desktop_unavailable", what, {}, undefined, { cause: error });
}

const problemOf = async (response: Response): Promise<RelayError> =>
  failureOf(await jsonAnswer(response).catch(() => null), `${response.status} from the relay`);

/** The failure that a problem document is about. @param otherwise said where it has no detail */
export function failureOf(body: unknown, otherwise = "the relay said no more"): RelayError {
  const problem = body !== null && typeof body === "object" ? (body as Record<string, unknown>) : {};
  const {
    type: _type,
    title: _title,
    status: _status,
    detail,
    instance: _instance,
    schema_version: _schema,
    retryable: _retryable,
    ...rest
  } = problem;
  const { reason, hint, ...data } = rest;
  const code = typeof reason === "string" && isErrorCode(reason) ? reason : "internal_error";
  return new RelayError(code, typeof detail === "string" ? detail : otherwise, data, typeof hint === "string" ? hint : undefined);
}

/** Everything that can be asked of one cluster's worker. */
export class ClusterClient {
  /** What its jobs use, and who uses what they left. */
  readonly lineage: LineageClient;

  constructor(
    readonly name: string,
    readonly http: HttpPeer,
  ) {
    this.lineage = new LineageClient(http);
  }

  /** @param trace that the job is to belong to */
  submit(submission: JobSubmissionInput, trace: TraceContext | null = null): Promise<JobReceipt> {
    const { traceparent, tracestate = null } = trace ?? {};
    const headers = { ...(traceparent === undefined ? {} : { traceparent }), ...(tracestate === null ? {} : { tracestate }) };
    return this.http.json("/jobs", { method: "POST", body: submission, headers, repeatable: submission.idempotency_key !== undefined });
  }

  job(id: string, signal?: AbortSignal): Promise<Job> {
    return this.http.json(`/jobs/${segment(id)}`, { signal });
  }

  status(id: string): Promise<JobStatus> {
    return this.http.json(`/jobs/${segment(id)}/status`);
  }

  wait(id: string, options: { timeout_seconds?: number; signal?: AbortSignal } = {}): Promise<JobWaitResult> {
    return this.http.json(`/jobs/${segment(id)}/wait`, {
      method: "POST",
      query: { timeout_seconds: options.timeout_seconds },
      signal: options.signal,
      repeatable: true,
    });
  }

  cancel(id: string, options: { cancel_scheduler_job?: boolean } = {}): Promise<Job> {
    return this.http.json(`/jobs/${segment(id)}/cancel`, { method: "POST", body: options, repeatable: true });
  }

  jobs({ signal, ...query }: JobListOptions = {}): Promise<{ jobs: JobSummary[]; next_before: number | null }> {
    return this.http.json("/jobs", { query, signal });
  }

  queue(options: QueueOptions = {}): Promise<QueueList> {
    const { signal, ...query } = options;
    return this.http.json("/queue", { query, signal });
  }

  events(id: string, page: PageOptions = {}): Promise<Named<"events", Event>> {
    return this.page(`/jobs/${segment(id)}/events`, page);
  }

  /**
   * Events from `cursor` on, as they are committed. Ends by itself after the job's last event; ends early (without an
   * error) when the connection is closed, so callers go on from the last seq they saw.
   */
  async *eventStream(id: string, options: PageOptions = {}): AsyncGenerator<Event, "terminal" | "closed"> {
    const messages = this.http.sse(`/jobs/${segment(id)}/events/sse`, { query: { cursor: options.cursor }, signal: options.signal });
    for await (const message of messages) {
      if (message.event === "terminal") return "terminal";
      yield JSON.parse(message.data) as Event;
    }
    return "closed";
  }

  /** The status document with a page of events. */
  monitor(id: string, page: PageOptions = {}): Promise<JobStatus & { events: Event[]; next_cursor: number }> {
    const { signal, ...query } = page;
    return this.http.json(`/jobs/${segment(id)}/monitor`, { query, signal });
  }

  attempts(id: string, page: PageOptions = {}): Promise<Named<"attempts", Attempt>> {
    return this.page(`/jobs/${segment(id)}/attempts`, page);
  }

  tasks(id: string, page: PageOptions = {}): Promise<Named<"tasks", Task>> {
    return this.page(`/jobs/${segment(id)}/tasks`, page);
  }

  taskEvents(taskId: string, page: PageOptions = {}): Promise<Named<"events", TaskEvent>> {
    return this.page(`/tasks/${segment(taskId)}/events`, page);
  }

  recordTaskEvent(taskId: string, event: NewTaskEventInput): Promise<TaskEvent> {
    return this.http.json(`/tasks/${segment(taskId)}/events`, { method: "POST", body: event });
  }

  progress(id: string, page: PageOptions = {}): Promise<Named<"progress", Progress>> {
    return this.page(`/jobs/${segment(id)}/progress`, page);
  }

  recordProgress(id: string, progress: NewProgressInput): Promise<Progress> {
    return this.http.json(`/jobs/${segment(id)}/progress`, { method: "POST", body: progress });
  }

  artifacts(id: string, page: PageOptions = {}): Promise<Named<"artifacts", Artifact>> {
    return this.page(`/jobs/${segment(id)}/artifacts`, page);
  }

  artifact(artifactId: string, signal?: AbortSignal): Promise<Artifact> {
    return this.http.json(`/artifacts/${segment(artifactId)}`, { signal });
  }

  /** The bytes of an artifact, from `offset` on. The body is a stream; its SHA-256 is the ETag. */
  artifactContent(artifactId: string, options: { offset?: number; signal?: AbortSignal } = {}): Promise<Response> {
    return this.http.send(`/artifacts/${segment(artifactId)}/content`, {
      headers: options.offset ? { range: `bytes=${options.offset}-` } : {},
      signal: options.signal,
    });
  }

  log(id: string, stream: LogStream, options: { offset?: number; limit?: number; tail?: number } = {}): Promise<LogChunk> {
    return this.http.json(`/jobs/${segment(id)}/logs/${stream}`, { query: { ...options } });
  }

  /** Where the output of one attempt lies in the job's logs. @throws RelayError not_found where there is no such attempt */
  async attemptLogs(id: string, attempt: number): Promise<LogSegment[]> {
    return (await this.http.json<{ segments: LogSegment[] }>(`/jobs/${segment(id)}/attempts/${attempt}/logs`)).segments;
  }

  /** The bytes of a log from `offset` on; with `follow` the body goes on until the job has ended. */
  logContent(
    id: string,
    stream: LogStream,
    options: { offset?: number; tail?: number; follow?: boolean; signal?: AbortSignal } = {},
  ): Promise<Response> {
    const { signal, ...query } = options;
    return this.http.send(`/jobs/${segment(id)}/logs/${stream}/content`, { query, signal });
  }

  workers(signal?: AbortSignal): Promise<{ workers: WorkerStatus[]; worker_count: number }> {
    return this.http.json("/workers", { signal });
  }

  /** The keys of its own sessions. */
  keys(signal?: AbortSignal): Promise<LinkKeys> {
    return this.http.json("/keys", { signal });
  }

  /** @param key a fingerprint, or a beginning of it. @throws RelayError not_found, usage, state_conflict */
  revokeKey(key: string): Promise<Revoked> {
    return this.http.json("/keys/revoke", { method: "POST", body: { key } });
  }

  /** @throws RelayError state_conflict */
  rotateHostKey(overlapSeconds: number): Promise<Rotation> {
    return this.http.json("/keys/rotate", { method: "POST", body: { overlap_seconds: overlapSeconds } });
  }

  /** The answer holds a secret. @throws RelayError state_conflict where the worker is not at that relay-host */
  makePairingCode(relayHost: string | null, keyTtlSeconds: number | null): Promise<PairingCodeMade> {
    return this.http.json("/pairings", { method: "POST", body: { relay_host: relayHost, key_ttl_seconds: keyTtlSeconds } });
  }

  /** Check the whole queue; changes nothing. */
  audit(): Promise<AuditReport> {
    return this.http.json("/queue/audit", { method: "POST", repeatable: true });
  }

  /** Put right what an audit can prove. */
  repair(): Promise<RepairReport> {
    return this.http.json("/queue/repair", { method: "POST", repeatable: true });
  }

  private page<K extends string, T>(path: string, { signal, ...query }: PageOptions): Promise<Named<K, T>> {
    return this.http.json(path, { query, signal });
  }
}
