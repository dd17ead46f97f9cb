import type { Job } from "../../domain/job.ts";
import type { Progress } from "../../domain/progress.ts";
import { isTerminal } from "../../domain/transitions.ts";
import type { JobStatus } from "../../domain/views.ts";
import { answerOf, type ToolAnswer } from "../answer.ts";
import { asked } from "../asked.ts";
import type { Clusters, Place } from "../clusters.ts";
import { RESULT_LOG_BYTES } from "../submit.ts";
import { jobView } from "../views.ts";
import { tails } from "../wait.ts";
import { type InputRequest, TaskInputs, withOrigin } from "./inputs.ts";

/** For so long a job that has ended is kept at least, in milliseconds. */
const TTL_MS = 30 * 86_400_000;
const POLL_MS = 1_000;
const MESSAGE_LENGTH = 1_000;

export type TaskState = "working" | "input_required" | "completed" | "cancelled" | "failed";

/** A task without what its state brings along (SEP-2663, Task). */
export interface TaskSeed {
  readonly taskId: string;
  readonly status: TaskState;
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
}

/** What the call would have been answered with. */
export type TaskEnd =
  | { readonly result: ToolAnswer }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

/** A task with all that tasks/get says of it (SEP-2663, DetailedTask). */
export interface TaskDocument extends TaskSeed {
  readonly inputRequests?: Readonly<Record<string, InputRequest>>;
  readonly result?: ToolAnswer & { readonly resultType: "complete" };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** How a job that has ended answers its call; null: as its kind does. */
export type EndOf = (place: Place, status: JobStatus, signal: AbortSignal) => Promise<TaskEnd | null>;

const STATES: Readonly<Record<Job["state"], TaskState>> = {
  queued: "working",
  leased: "working",
  running: "working",
  succeeded: "completed",
  failed: "completed",
  canceled: "cancelled",
};

type SeedOf = Pick<Job, "job_id" | "state" | "created_at" | "updated_at" | "outcome" | "cancellation_request">;

/** What a task is called at its birth, which may be after the end of its job. */
export function seedOf(job: SeedOf, progress: readonly Progress[] = [], waiting = false): TaskSeed {
  const status = STATES[job.state];
  const message = messageOf(job, progress);
  return {
    taskId: job.job_id,
    status: waiting && status === "working" ? "input_required" : status,
    ...(message === null ? {} : { statusMessage: message.slice(0, MESSAGE_LENGTH).toWellFormed() }),
    createdAt: job.created_at,
    lastUpdatedAt: job.updated_at,
    ttlMs: TTL_MS,
    pollIntervalMs: POLL_MS,
  };
}

function messageOf(job: SeedOf, progress: readonly Progress[]): string | null {
  if (job.outcome !== null) return job.outcome.message === "" ? job.outcome.reason : job.outcome.message;
  if (job.cancellation_request !== null) return "it is being canceled";
  const last = progress.reduce<Progress | null>((latest, one) => (latest === null || one.sequence > latest.sequence ? one : latest), null);
  if (last === null) return job.state === "running" ? null : job.state;
  const how =
    last.current === null
      ? ""
      : ` ${last.current}${last.total === null ? "" : ` of ${last.total}`}${last.unit === null ? "" : ` ${last.unit}`}`;
  return `${last.label}${how}${last.message === null || last.message === "" ? "" : `: ${last.message}`}`;
}

/** Jobs as tasks. There is no state here that the worker does not have. */
export class Tasks {
  readonly inputs = new TaskInputs();

  constructor(
    private readonly clusters: Clusters,
    private readonly endOf: EndOf = () => Promise.resolve(null),
  ) {}

  /** @throws RelayError job_not_found, and as any operation */
  async get(taskId: string, signal: AbortSignal): Promise<TaskDocument> {
    const place = await this.clusters.ofJob(taskId, {}, signal);
    const status = await ask(place, signal, (bounded) => place.client.status(taskId, bounded));
    const { job, progress } = status;
    if (!isTerminal(job.state)) {
      const outstanding = await ask(place, signal, (bounded) => this.inputs.outstanding(place.client, taskId, bounded));
      if (outstanding.size === 0) return seedOf(job, progress);
      const inputRequests = Object.fromEntries(
        [...outstanding].map(([key, { request }]) => [key, withOrigin(request, place.entry.name, taskId)]),
      );
      return { ...seedOf(job, progress, true), inputRequests };
    }
    const seed = seedOf(job, progress);
    if (job.state === "canceled") return seed;
    const end = (await this.endOf(place, status, signal)) ?? { result: await resultOf(place, status, signal) };
    if ("error" in end) return { ...seed, status: "failed", error: end.error };
    return { ...seed, result: { resultType: "complete", ...end.result } };
  }

  /** @throws RelayError job_not_found, payload_too_large, and as any operation */
  async update(taskId: string, responses: Parameters<TaskInputs["answer"]>[2], signal: AbortSignal): Promise<void> {
    const place = await this.clusters.ofJob(taskId, {}, signal);
    const job = await ask(place, signal, (bounded) => place.client.job(taskId, bounded));
    if (isTerminal(job.state)) return;
    await ask(place, signal, (bounded) => this.inputs.answer(place.client, taskId, responses, bounded));
  }

  /** @throws RelayError job_not_found, and as any operation */
  async cancel(taskId: string, signal: AbortSignal): Promise<void> {
    const place = await this.clusters.ofJob(taskId, {}, signal);
    await ask(place, signal, (bounded) => place.client.cancel(taskId, { cancel_scheduler_job: false }, bounded));
  }
}

const ask = <T>({ entry }: Place, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  asked(`the worker of ${entry.name}`, signal, work);

/** What a tool that submits answers with when its job has ended: the same members as without a task. */
async function resultOf(place: Place, status: JobStatus, signal: AbortSignal): Promise<ToolAnswer> {
  const { job } = status;
  const output = {
    ...jobView(place, job),
    idempotency_key: job.idempotency_key,
    existing: false,
    observation: { outcome: "terminal", timeout_seconds: null, scheduler_action: "none", relay_action: "none" },
    logs_tail: await tails(place, job.job_id, RESULT_LOG_BYTES, signal),
  };
  return answerOf(output, job.state !== "succeeded");
}
