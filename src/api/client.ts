import type { Artifact } from "../domain/artifact.ts";
import type { Attempt } from "../domain/attempt.ts";
import { errorRule, isErrorCode, RelayError } from "../domain/errors.ts";
import type { Event } from "../domain/event.ts";
import type { Job, JobKind, JobReceipt, JobState, JobSubmissionInput } from "../domain/job.ts";
import type { LogChunk, LogStream } from "../domain/log.ts";
import type { NewProgressInput, Progress } from "../domain/progress.ts";
import type { NewTaskEventInput, Task, TaskEvent } from "../domain/task.ts";
import type { JobStatus, JobSummary, JobWaitResult, WorkerStatus } from "../domain/views.ts";
import { readSse, type SseMessage } from "./sse-reader.ts";

/** Where an app listens. */
export type Address =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly url: string; readonly token: string };

type Named<K extends string, T> = Record<K, T[]> & { cursor: number; limit: number; next_cursor: number; total: number };

export interface PageOptions {
  readonly cursor?: number;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface JobListOptions {
  readonly state?: readonly JobState[];
  readonly kind?: JobKind;
  readonly before?: number;
  readonly limit?: number;
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
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** One HTTP conversation partner: builds URLs, sends, turns problems into RelayErrors. */
export class HttpPeer {
  constructor(
    private readonly address: Address,
    private readonly prefix = "",
  ) {}

  under(prefix: string): HttpPeer {
    return new HttpPeer(this.address, this.prefix + prefix);
  }

  /** Send a request. The answer is a success, or the call throws the RelayError that its problem document names. */
  async send(path: string, options: CallOptions = {}): Promise<Response> {
    const origin = this.address.kind === "unix" ? "http://relay" : this.address.url;
    const url = new URL(`${origin}${this.prefix}${path}`);
    for (const [key, value] of Object.entries(options.query ?? {})) {
      if (value === undefined) continue;
      for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(key, String(item));
    }
    const headers: Record<string, string> = { ...options.headers };
    if (options.body !== undefined) headers["content-type"] = "application/json";
    if (this.address.kind === "tcp") headers.authorization = `Bearer ${this.address.token}`;
    let response: Response;
    try {
      response = await fetch(url, {
        method: options.method ?? "GET",
        headers,
        ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        ...(this.address.kind === "unix" ? { unix: this.address.path } : {}),
        // Waits and streams are quiet for as long as they like; the caller's signal ends them.
        timeout: false,
      } as RequestInit);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw new RelayError("desktop_unavailable", "no answer from the local socket", {}, undefined, { cause: error });
    }
    if (response.ok || response.status === 304) return response;
    throw await problemOf(response);
  }

  async json<T>(path: string, options: CallOptions = {}): Promise<T> {
    return (await this.send(path, options)).json() as Promise<T>;
  }

  /** Messages of an SSE route until it ends or the connection breaks. */
  async *sse(path: string, options: CallOptions = {}): AsyncGenerator<SseMessage> {
    const response = await this.send(path, { ...options, headers: { ...options.headers, accept: "text/event-stream" } });
    if (response.body !== null) yield* readSse(response.body);
  }
}

async function problemOf(response: Response): Promise<RelayError> {
  const body: unknown = await response.json().catch(() => null);
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
  return new RelayError(
    code,
    typeof detail === "string" ? detail : `${response.status} from the relay`,
    data,
    typeof hint === "string" ? hint : errorRule(code).hint,
  );
}

/** Everything that can be asked of one cluster's worker. */
export class ClusterClient {
  constructor(
    readonly name: string,
    readonly http: HttpPeer,
  ) {}

  submit(submission: JobSubmissionInput): Promise<JobReceipt> {
    return this.http.json("/jobs", { method: "POST", body: submission });
  }

  job(id: string): Promise<Job> {
    return this.http.json(`/jobs/${id}`);
  }

  status(id: string): Promise<JobStatus> {
    return this.http.json(`/jobs/${id}/status`);
  }

  wait(id: string, options: { timeout_seconds?: number; signal?: AbortSignal } = {}): Promise<JobWaitResult> {
    return this.http.json(`/jobs/${id}/wait`, {
      method: "POST",
      query: { timeout_seconds: options.timeout_seconds },
      signal: options.signal,
    });
  }

  cancel(id: string, options: { cancel_scheduler_job?: boolean } = {}): Promise<Job> {
    return this.http.json(`/jobs/${id}/cancel`, { method: "POST", body: options });
  }

  jobs(options: JobListOptions = {}): Promise<{ jobs: JobSummary[]; next_before: number | null }> {
    return this.http.json("/jobs", { query: { ...options } });
  }

  queue(options: QueueOptions = {}): Promise<QueueList> {
    const { signal, ...query } = options;
    return this.http.json("/queue", { query, signal });
  }

  events(id: string, page: PageOptions = {}): Promise<Named<"events", Event>> {
    return this.page(`/jobs/${id}/events`, page);
  }

  /**
   * Events from `cursor` on, as they are committed. Ends by itself after the job's last event; ends early (without an
   * error) when the connection is closed, so callers go on from the last seq they saw.
   */
  async *eventStream(id: string, options: PageOptions = {}): AsyncGenerator<Event, "terminal" | "closed"> {
    const messages = this.http.sse(`/jobs/${id}/events/sse`, { query: { cursor: options.cursor }, signal: options.signal });
    for await (const message of messages) {
      if (message.event === "terminal") return "terminal";
      yield JSON.parse(message.data) as Event;
    }
    return "closed";
  }

  attempts(id: string, page: PageOptions = {}): Promise<Named<"attempts", Attempt>> {
    return this.page(`/jobs/${id}/attempts`, page);
  }

  tasks(id: string, page: PageOptions = {}): Promise<Named<"tasks", Task>> {
    return this.page(`/jobs/${id}/tasks`, page);
  }

  taskEvents(taskId: string, page: PageOptions = {}): Promise<Named<"events", TaskEvent>> {
    return this.page(`/tasks/${taskId}/events`, page);
  }

  recordTaskEvent(taskId: string, event: NewTaskEventInput): Promise<TaskEvent> {
    return this.http.json(`/tasks/${taskId}/events`, { method: "POST", body: event });
  }

  progress(id: string, page: PageOptions = {}): Promise<Named<"progress", Progress>> {
    return this.page(`/jobs/${id}/progress`, page);
  }

  recordProgress(id: string, progress: NewProgressInput): Promise<Progress> {
    return this.http.json(`/jobs/${id}/progress`, { method: "POST", body: progress });
  }

  artifacts(id: string, page: PageOptions = {}): Promise<Named<"artifacts", Artifact>> {
    return this.page(`/jobs/${id}/artifacts`, page);
  }

  artifact(artifactId: string): Promise<Artifact> {
    return this.http.json(`/artifacts/${artifactId}`);
  }

  /** The bytes of an artifact, from `offset` on. The body is a stream; its SHA-256 is the ETag. */
  artifactContent(artifactId: string, options: { offset?: number; signal?: AbortSignal } = {}): Promise<Response> {
    return this.http.send(`/artifacts/${artifactId}/content`, {
      headers: options.offset ? { range: `bytes=${options.offset}-` } : {},
      signal: options.signal,
    });
  }

  log(id: string, stream: LogStream, options: { offset?: number; limit?: number; tail?: number } = {}): Promise<LogChunk> {
    return this.http.json(`/jobs/${id}/logs/${stream}`, { query: { ...options } });
  }

  /** The bytes of a log from `offset` on; with `follow` the body goes on until the job has ended. */
  logContent(
    id: string,
    stream: LogStream,
    options: { offset?: number; tail?: number; follow?: boolean; signal?: AbortSignal } = {},
  ): Promise<Response> {
    const { signal, ...query } = options;
    return this.http.send(`/jobs/${id}/logs/${stream}/content`, { query, signal });
  }

  workers(): Promise<{ workers: WorkerStatus[]; worker_count: number }> {
    return this.http.json("/workers");
  }

  private page<K extends string, T>(path: string, { signal, ...query }: PageOptions): Promise<Named<K, T>> {
    return this.http.json(path, { query, signal });
  }
}
