import * as v from "valibot";
import { type ErrorCode, RelayError } from "../domain/errors.ts";
import type { JobReceipt, JobSubmissionInput } from "../domain/job.ts";
import { isTerminal } from "../domain/transitions.ts";
import { asked } from "./asked.ts";
import type { Place } from "./clusters.ts";
import type { Submitted, ToolCall } from "./tool.ts";
import { JobView, jobView } from "./views.ts";
import { OBSERVED, type WaitedView, waited } from "./wait.ts";

/** With these it is not known whether the submission was taken on. */
const UNKNOWN: ReadonlySet<ErrorCode> = new Set([
  "link_down",
  "answer_malformed",
  "request_interrupted",
  "desktop_unavailable",
  "observation_timeout",
]);

/** Where a submission's job came from, in its metadata. */
const VIA = "mcp_tool";

export interface Wanted {
  readonly cluster: string;
  readonly kind: JobSubmissionInput["kind"];
  readonly spec: unknown;
  readonly idempotency_key?: string | undefined;
  /** Where the tool takes its key, as a hint says it; left out: `idempotency_key`. */
  readonly key_argument?: string | undefined;
  readonly used_artifact_refs: NonNullable<JobSubmissionInput["used_artifact_refs"]>;
  /** What lists call it. */
  readonly title?: string | undefined;
  /** What else its job's metadata has: what makes it another submission, and is no part of the spec. */
  readonly metadata?: Readonly<Record<string, boolean>>;
  /** Done once it is in the queue, and again where the same is submitted again. */
  readonly onQueued?: (client: Place["client"], jobId: string, signal: AbortSignal) => Promise<void>;
}

/** A submission that is in the queue. */
export interface Admitted {
  readonly place: Place;
  readonly receipt: JobReceipt;
  readonly key: string;
}

/**
 * Put a job into a cluster's queue.
 *
 * @param tool by whose name the agent asked for it: another tool under the same key is another submission
 * @throws RelayError with `idempotency_key` among its data where it is not known whether it was taken on
 */
export async function submit(
  tool: string,
  wanted: Wanted,
  call: ToolCall,
  mayRun: (place: Place) => void = () => undefined,
): Promise<Admitted> {
  const { cluster, kind, spec, used_artifact_refs, title, metadata = {}, onQueued } = wanted;
  const place = await call.clusters.named(cluster, call.signal);
  mayRun(place);
  const key = wanted.idempotency_key ?? `mcp_${crypto.randomUUID().replaceAll("-", "")}`;
  const submission = {
    cluster: place.entry.name,
    kind,
    spec,
    idempotency_key: key,
    used_artifact_refs,
    metadata: { [VIA]: tool, ...metadata, ...(title === undefined ? {} : { title }), ...call.clusters.origin(place.entry.name) },
  } as JobSubmissionInput;
  try {
    // What is on its way is not called back when the client goes: it may be there already.
    const { signal } = new AbortController();
    const who = `the worker of ${cluster}`;
    const receipt = await asked(who, signal, (during) => place.client.submit(submission, null, during));
    call.clusters.remember(receipt.job_id, place.entry.name);
    if (onQueued !== undefined && !isTerminal(receipt.state))
      await asked(who, signal, (during) => onQueued(place.client, receipt.job_id, during));
    return { place, receipt, key };
  } catch (error) {
    if (!(error instanceof RelayError) || !UNKNOWN.has(error.code) || error.data["sent"] === false) throw error;
    const hint = `call it again with ${wanted.key_argument ?? "idempotency_key"} ${key}: it is not taken on twice`;
    throw new RelayError(
      error.code,
      error.message,
      { ...error.data, idempotency_key: key },
      error.hint === undefined ? hint : `${error.hint}; then ${hint}`,
    );
  }
}

export const submitted = ({ receipt }: Admitted): Submitted => ({ job: receipt });

const Receipt = {
  idempotency_key: v.string(),
  existing: v.pipe(v.boolean(), v.description("whether the key had brought it about before")),
};

/** The job that a submission has brought about, and how it ended where that was waited for. */
const { observation, ...observed } = OBSERVED;
export const SubmittedView = v.object({ ...JobView, ...Receipt, observation: v.optional(observation), ...observed });
export type SubmittedView = v.InferOutput<typeof SubmittedView>;

export async function receiptOf(
  { place, receipt, key }: Admitted,
  then: { readonly wait_for_terminal: boolean; readonly wait_timeout_seconds: number },
  call: ToolCall,
): Promise<SubmittedView> {
  const view = { ...jobView(place, receipt), idempotency_key: key, existing: receipt.existing };
  if (!then.wait_for_terminal) return view;
  const options = { timeout_seconds: then.wait_timeout_seconds, include_logs: true, log_limit: RESULT_LOG_BYTES };
  return { ...view, ...resultView(await waited(place, receipt.job_id, options, call)) };
}

/** Of each stream, in the answer of a tool whose job has ended. */
export const RESULT_LOG_BYTES = 8 * 1024;

/** What of a wait such an answer has. */
const resultView = ({ obstacle: _o, queue_position: _q, progress: _p, started_at: _s, ended_at: _e, logs: _l, ...rest }: WaitedView) =>
  rest;
