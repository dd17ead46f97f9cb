import { expect } from "bun:test";
import type { NewArtifact } from "../../../src/domain/artifact.ts";
import type { ProcessIdentity } from "../../../src/domain/attempt.ts";
import type { Capacity, Endpoint } from "../../../src/domain/endpoint.ts";
import { type ErrorCode, isRelayError, type RelayError } from "../../../src/domain/errors.ts";
import type { Event } from "../../../src/domain/event.ts";
import type { Job, JobSubmission, Lane, Outcome, OutcomeReason } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import type { LogStream, StreamCapture } from "../../../src/domain/log.ts";
import type { Page } from "../../../src/domain/page.ts";
import { timestamp } from "../../../src/lib/waiting/clock.ts";
import type { Claim, Fence, QueueStore, Settlement } from "../../../src/queue/store.ts";
import type { Backend, BackendFactory } from "./backend.ts";
import { ManualClock } from "./manual-clock.ts";

/** Enough for every test that does not look at capacity. */
export const ROOMY: Capacity = { concurrency: 1_000, control_query_concurrency: 100, kind_concurrency: {}, scheduler_jobs: 500 };

export interface SceneOptions {
  readonly activeJobsMax?: number;
  readonly consumersMax?: number;
  readonly leaseSeconds?: number;
}

type CommandSubmission = Extract<JobSubmission, { kind: "command" }>;

/** A queue in a test: the store, its clock, and short ways to the states that tests begin in. */
export class Scene {
  #next = 0;

  private constructor(
    readonly backend: Backend,
    readonly clock: ManualClock,
    private readonly options: Required<SceneOptions>,
    public store: QueueStore,
  ) {}

  static async open(factory: BackendFactory, options: SceneOptions = {}): Promise<Scene> {
    const clock = new ManualClock();
    const backend = await factory();
    const all = { activeJobsMax: 10_000, consumersMax: LIMITS.consumersPerArtifact, leaseSeconds: 120, ...options };
    return new Scene(backend, clock, all, await backend.open({ clock, ...all }));
  }

  /** Close the store, do something behind its back, and open it as a new process would. */
  async reopen(between: () => Promise<void> | void = () => undefined): Promise<QueueStore> {
    await this.store.close();
    await between();
    this.store = await this.backend.open({ clock: this.clock, ...this.options });
    return this.store;
  }

  async dispose(): Promise<void> {
    await this.store.close();
    await this.backend.dispose();
  }

  id(prefix: string): string {
    return `${prefix}_${(this.#next++).toString(16).padStart(32, "0")}`;
  }

  async submit(overrides: Partial<CommandSubmission> = {}, lane: Lane = "workload"): Promise<Job> {
    return (await this.store.submit(command(overrides), lane)).job;
  }

  async endpoint(): Promise<string> {
    const endpoint = endpointOf(this.id("endpoint"), this.clock);
    await this.store.registerEndpoint(endpoint);
    return endpoint.endpoint_id;
  }

  /** A job that was just claimed. */
  async claimed(overrides: Partial<CommandSubmission> = {}): Promise<Claim & { readonly fence: Fence }> {
    const job = await this.submit(overrides);
    const claim = await this.store.claim(await this.endpoint(), ROOMY);
    expect(claim?.job.job_id).toBe(job.job_id);
    return { ...claim!, fence: { job_id: job.job_id, attempt: claim!.attempt.attempt } };
  }

  /** A job whose attempt runs. */
  async running(overrides: Partial<CommandSubmission> = {}): Promise<{ readonly job: Job; readonly fence: Fence }> {
    const { fence } = await this.claimed(overrides);
    return { job: await this.store.startAttempt(fence, started(this.clock)), fence };
  }

  /** Every event of a job, read page by page. */
  async events(jobId: string): Promise<Event[]> {
    const all: Event[] = [];
    for (let cursor = 1; ; ) {
      const page = await this.store.events(jobId, { cursor, limit: 7 });
      all.push(...page.items);
      if (page.items.length === 0) return all;
      cursor = page.next_cursor;
    }
  }

  async eventTypes(jobId: string): Promise<string[]> {
    return (await this.events(jobId)).map((event) => event.event_type);
  }

  /** Not even a deep audit finds anything. */
  async expectSound(): Promise<void> {
    const { ok, findings } = await this.store.audit({ deep: true });
    expect(findings).toEqual([]);
    expect(ok).toBe(true);
  }
}

/** Opens a fresh queue that is removed after the test. */
export type OpenScene = (options?: SceneOptions) => Promise<Scene>;

/** `true`, as a client with all defaults filled in submits it. */
export function command(overrides: Partial<CommandSubmission> = {}): CommandSubmission {
  return {
    kind: "command",
    cluster: "local",
    spec: { argv: ["true"], workdir: null, env: {}, login: false, timeout_seconds: null, outputs: [], retries: 0 },
    owner_session_id: null,
    owner_session_generation_id: null,
    used_artifact_refs: [],
    metadata: {},
    ...overrides,
  };
}

export const withRetries = (retries: number): Partial<CommandSubmission> => ({ spec: { ...command().spec, retries } });

/** A job of another kind, for what depends on kinds. */
export const jarvis = (): JobSubmission => ({
  ...command(),
  kind: "jarvis",
  spec: { pipeline_name: "ior", workdir: null, env: {}, timeout_seconds: null },
});

export const endpointOf = (endpointId: string, clock: ManualClock): Endpoint => ({
  endpoint_id: endpointId,
  role: "worker",
  cluster: "local",
  process: identity(4_711),
  version: "0.1.0",
  capacity: ROOMY,
  registered_at: timestamp(clock),
  last_seen_at: timestamp(clock),
  stopped_at: null,
  lane_last_error: null,
});

export const identity = (pid: number): ProcessIdentity => ({
  pid,
  start_time: 100 + pid,
  boot_id: "a-boot-of-no-machine",
  hostname: "node-1",
});

export const started = (clock: ManualClock, pid = 2_000): { shim: ProcessIdentity; process: ProcessIdentity; started_at: string } => ({
  shim: identity(pid - 1),
  process: identity(pid),
  started_at: timestamp(clock),
});

export const outcome = (reason: OutcomeReason): Outcome => ({
  reason,
  exit_code: reason === "completed" ? 0 : reason === "exit_nonzero" ? 3 : null,
  signal: reason === "signaled" ? "SIGSEGV" : null,
  message: `it ended as ${reason}`,
  residual: [],
});

export const capture = (kept: number, more: Partial<StreamCapture> = {}): StreamCapture => ({
  observed: kept,
  kept,
  dropped: 0,
  truncated: null,
  complete: true,
  ...more,
});

export function settlement(clock: ManualClock, reason: OutcomeReason, more: Partial<Settlement> = {}): Settlement {
  const captures: Record<LogStream, StreamCapture> = { stdout: capture(0), stderr: capture(0) };
  return { outcome: outcome(reason), ended_at: timestamp(clock), captures, artifacts: [], events: [], ...more };
}

export const artifact = (id: string, more: Partial<NewArtifact> = {}): NewArtifact => ({
  artifact_id: id,
  kind: "execution_output",
  name: "out/result.dat",
  uri: `spool:artifacts/${id}`,
  size_bytes: 12,
  sha256: "ab".repeat(32),
  metadata: {},
  ...more,
});

/** The promise is refused with a RelayError of this code, which is returned. */
export async function refused(promise: Promise<unknown>, code: ErrorCode): Promise<RelayError> {
  let error: unknown;
  try {
    await promise;
  } catch (thrown) {
    error = thrown;
  }
  expect(isRelayError(error, code) ? code : (error ?? "it was accepted")).toBe(code);
  return error as RelayError;
}

/** The entries of all pages, page by page, up to the first empty one. */
export async function pagesOf<T>(page: (cursor: number) => Promise<Page<T>>): Promise<(readonly T[])[]> {
  const pages: (readonly T[])[] = [];
  for (let cursor = 1; ; ) {
    const { items, next_cursor } = await page(cursor);
    if (items.length === 0) return pages;
    pages.push(items);
    cursor = next_cursor;
  }
}

/** Every event's seq, which must count from 1 without gaps. */
export function expectGapless(events: readonly Event[]): void {
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
}
