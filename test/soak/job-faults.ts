import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Artifact } from "../../src/domain/artifact.ts";
import type { Attempt } from "../../src/domain/attempt.ts";
import type { Event } from "../../src/domain/event.ts";
import type { Job, OutcomeReason } from "../../src/domain/job.ts";
import { LOG_STREAMS, type LogStream, type StreamCapture } from "../../src/domain/log.ts";
import { verdict } from "../../src/domain/retry.ts";
import { canTransition, isTerminal } from "../../src/domain/transitions.ts";
import { historyFaults } from "../roles/worker/harness.ts";
import type { Relay } from "../runner/relay.ts";
import { reasonsOf, type SoakJob } from "./choice.ts";
import { difference, pattern } from "./pattern.ts";
import { type Effects, effectsOf, patternKey, type Work } from "./work.ts";

/** What the faults of a soak may have done to an attempt, beyond how it ends by itself. */
export interface Excuses {
  /** Further ways in which it may have ended. */
  readonly reasons: readonly OutcomeReason[];
  /** Its shim was killed: what the shim had not written yet is lost. */
  readonly shimKilled: boolean;
}

export const NO_EXCUSE: Excuses = { reasons: [], shimKilled: false };

type Streams = Readonly<Record<LogStream, StreamCapture>>;

/** One attempt that was started, with all that it left. */
interface Left {
  readonly attempt: Attempt;
  readonly reason: OutcomeReason | null;
  /** It came to the end of its program, so that everything it was to write is there. */
  readonly whole: boolean;
  readonly excuses: Excuses;
  readonly effects: Effects | undefined;
  readonly artifacts: readonly Artifact[];
}

/** Names of what changes a job's state, and the state after it. */
const STATE_AFTER = {
  "job.queued": "queued",
  "job.requeued": "queued",
  "job.leased": "leased",
  "job.running": "running",
  "job.succeeded": "succeeded",
  "job.failed": "failed",
  "job.canceled": "canceled",
} as const;

/** Changes of state that the table of transitions does not have, in the order of a job's events. */
export function stateFaults(events: readonly Event[], end: Job["state"]): string[] {
  const faults: string[] = [];
  let state: Job["state"] | null = null;
  for (const { event_type, seq } of events) {
    if (!Object.hasOwn(STATE_AFTER, event_type)) continue;
    const next = STATE_AFTER[event_type as keyof typeof STATE_AFTER];
    if (state === null ? next !== "queued" : !canTransition(state, next)) faults.push(`event ${seq} leads from ${state} to ${next}`);
    state = next;
  }
  return state === end ? faults : [...faults, `the events end in ${state}, the job in ${end}`];
}

/**
 * Everything that is wrong with a job that has ended, asked of the relay by the commands of its users and held against what the job's own
 * program did.
 */
export async function jobFaults(relay: Relay, job: SoakJob, jobId: string, excuses: (attempt: Attempt) => Excuses): Promise<string[]> {
  const page = ["--limit", "500"] as const;
  const { job: record } = await relay.json<{ job: Job }>("job", "status", jobId);
  const { attempts } = await relay.json<{ attempts: Attempt[] }>("job", "attempts", jobId, ...page);
  const { artifacts } = await relay.json<{ artifacts: Artifact[] }>("job", "list-artifacts", jobId, ...page);
  const watched = await relay.run(["job", "watch", jobId, "--json"]);
  const events = watched.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);
  const effects = effectsOf(job.work);
  const left = attempts
    .filter(({ state }) => state !== "void")
    .map((attempt): Left => {
      const reason = attempt.outcome?.reason ?? null;
      return {
        attempt,
        reason,
        whole: reason === "completed" || reason === "exit_nonzero",
        excuses: excuses(attempt),
        effects: effects.find((one) => one.attempt === attempt.attempt),
        artifacts: artifacts.filter(({ metadata }) => metadata["attempt"] === attempt.attempt),
      };
    });
  return [
    ...(isTerminal(record.state) ? [] : [`is ${record.state}`]),
    ...(watched.code === (record.state === "succeeded" ? 0 : 10) ? [] : [`job watch ended with ${watched.code}: ${watched.stderr}`]),
    ...historyFaults(events),
    ...stateFaults(events, record.state),
    ...effectFaults(left, effects),
    ...endFaults(job, record, left),
    ...(await faultsOf(artifactFaults(relay, job, left, artifacts))),
    ...(await faultsOf(logFaults(relay, job, jobId, left))),
    ...(await faultsOf(reportFaults(relay, jobId, left))),
  ];
}

/** A command that fails is a fault like any other. */
const faultsOf = (check: Promise<string[]>): Promise<string[]> =>
  check.catch((error: unknown) => [error instanceof Error ? error.message : String(error)]);

/** Each attempt was started once, and nothing but attempts was. */
function effectFaults(left: readonly Left[], effects: readonly Effects[]): string[] {
  const faults = effects
    .filter(({ starts }) => starts !== 1)
    .map(({ attempt, starts }) => `attempt ${attempt} was started ${starts} times`);
  for (const { attempt } of effects) {
    if (!left.some((one) => one.attempt.attempt === attempt)) faults.push(`attempt ${attempt} ran, and is not recorded as one that did`);
  }
  for (const { attempt, whole, effects: done } of left) {
    if (attempt.state !== "ended") faults.push(`attempt ${attempt.attempt} is ${attempt.state}`);
    if (whole && done === undefined) faults.push(`attempt ${attempt.attempt} ended by itself, and its program never ran`);
  }
  return faults;
}

/** Each attempt ended in a way that it could, and the job as its last attempt says, retries being left or not. */
function endFaults(job: SoakJob, record: Job, left: readonly Left[]): string[] {
  const faults: string[] = [];
  if (left.length === 0) {
    if (job.cancelAfterMs === null || record.state !== "canceled") faults.push(`never ran, and is ${record.state}`);
    return faults;
  }
  let ran = 0;
  left.forEach(({ attempt, reason, excuses, effects }, i) => {
    const allowed = [...reasonsOf(job, ran), ...excuses.reasons];
    if (reason === null || !allowed.includes(reason))
      faults.push(`attempt ${attempt.attempt}: ${JSON.stringify(attempt.outcome)}, not ${allowed}`);
    if (effects !== undefined) ran++;
    if (attempt.outcome === null) return;
    const next = verdict(record, i + 1, attempt.outcome).state;
    const last = i === left.length - 1;
    if (last && next !== record.state) faults.push(`is ${record.state} after ${attempt.outcome.reason}, should be ${next}`);
    if (!last && verdict({ ...record, cancellation_request: null }, i + 1, attempt.outcome).state !== "queued")
      faults.push(`was run again after ${attempt.outcome.reason} in attempt ${attempt.attempt}`);
  });
  return faults;
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Every artifact's bytes are what its record says, and outputs what the program wrote. */
async function artifactFaults(relay: Relay, job: SoakJob, left: readonly Left[], artifacts: readonly Artifact[]): Promise<string[]> {
  const faults: string[] = [];
  for (const artifact of artifacts) {
    const file = path.join(relay.directory, artifact.artifact_id);
    const read = await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", file]);
    if (read.code !== 0) {
      faults.push(`${artifact.name} cannot be read: ${read.stderr}`);
      continue;
    }
    const bytes = fs.readFileSync(file);
    fs.rmSync(file);
    if (bytes.length !== artifact.size_bytes || sha256(bytes) !== artifact.sha256)
      faults.push(`${artifact.name} is not what its record says`);
    const output = /^out\/(\d+)$/.exec(artifact.name)?.[1];
    const attempt = Number(artifact.metadata["attempt"]);
    const written = left.find((one) => one.attempt.attempt === attempt)?.effects?.outputs ?? 0;
    if (output === undefined || Number(output) >= written) continue;
    const wrong = difference(bytes, pattern(patternKey(job.work, attempt, `out${output}`), job.work.outputs[Number(output)]!));
    if (wrong !== null) faults.push(`${artifact.name} of attempt ${attempt}: ${wrong}`);
  }
  for (const { attempt, effects, artifacts: own, reason } of left) {
    const count = (kind: string): number => own.filter((artifact) => artifact.kind === kind).length;
    const wanted = job.options.includes("--output") ? (effects?.outputs ?? 0) : 0;
    if (count("execution_output") < wanted)
      faults.push(`attempt ${attempt.attempt} left ${count("execution_output")} of ${wanted} outputs`);
    for (const kind of ["stdout", "stderr", "log_capture", "provenance"]) {
      if (reason !== null && count(kind) !== 1) faults.push(`attempt ${attempt.attempt} left ${count(kind)} ${kind}`);
    }
  }
  return faults;
}

/** The log is what the attempts wrote, one after the other, byte for byte. */
async function logFaults(relay: Relay, { work }: SoakJob, jobId: string, left: readonly Left[]): Promise<string[]> {
  const faults: string[] = [];
  if (left.length === 0) return faults;
  const captures = await Promise.all(left.map((one) => capturesOf(relay, one)));
  for (const stream of LOG_STREAMS) {
    const log = await relay.bytes("job", "read-log", jobId, "--stream", stream, "--raw");
    let at = 0;
    left.forEach((one, i) => {
      const { kept, truncated, complete } = captures[i]![stream];
      const fault = pieceFault(work, one, stream, log.subarray(at, at + kept), captures[i]![stream]);
      if (fault !== null) faults.push(`${stream} of attempt ${one.attempt.attempt}: ${fault}`);
      if (!complete && !one.excuses.shimKilled) faults.push(`${stream} of attempt ${one.attempt.attempt} is not complete (${truncated})`);
      at += kept;
    });
    if (at !== log.length) faults.push(`${stream} has ${log.length} bytes, its attempts kept ${at}`);
  }
  return faults;
}

async function capturesOf(relay: Relay, { artifacts }: Left): Promise<Streams> {
  const capture = artifacts.find(({ kind }) => kind === "log_capture");
  if (capture === undefined) throw new Error("an attempt without its log capture");
  return (JSON.parse(String(await relay.bytes("job", "read-artifact", capture.artifact_id, "-o", "-"))) as { streams: Streams }).streams;
}

function pieceFault(work: Work, { attempt, effects, whole, excuses }: Left, stream: LogStream, bytes: Buffer, capture: StreamCapture) {
  if (capture.observed !== capture.kept + capture.dropped)
    return `${capture.observed} bytes seen, ${capture.kept} kept, ${capture.dropped} dropped`;
  if (effects === undefined) return bytes.length === 0 ? null : `${bytes.length} bytes of a program that did not begin`;
  const expected = pattern(patternKey(work, attempt.attempt, stream), work[stream]);
  const wrong = difference(bytes, expected, whole && capture.truncated === null);
  if (wrong !== null) return wrong;
  const least = excuses.shimKilled || capture.truncated !== null ? 0 : effects[stream];
  const most = effects[stream] + work.chunk;
  return bytes.length >= least && bytes.length <= most ? null : `${bytes.length} bytes, the program had written ${effects[stream]}`;
}

/** Each report that the program made is on record once. One that it was making when it was ended may be. */
async function reportFaults(relay: Relay, jobId: string, left: readonly Left[]): Promise<string[]> {
  const { total: progress } = await relay.json<{ total: number }>("job", "progress", jobId, "--limit", "1");
  const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", jobId);
  let events = 0;
  for (const { task_id } of tasks) events += (await relay.json<{ total: number }>("job", "task-events", task_id, "--limit", "1")).total;
  const made = left.reduce((sum, { effects }) => sum + (effects?.reports ?? 0), 0);
  const doubtful = left.filter(({ whole }) => !whole).length;
  const recorded = progress + events;
  return recorded >= made && recorded <= made + doubtful ? [] : [`${recorded} reports on record, ${made} were made`];
}
