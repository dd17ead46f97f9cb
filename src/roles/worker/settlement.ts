import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { NewArtifact } from "../../domain/artifact.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { Job, Outcome, OutcomeReason } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { LOG_STREAMS, type StreamCapture } from "../../domain/log.ts";
import { type Collected, collectOutputs } from "../../execution/artifacts.ts";
import { clearMaking, readProcess, readSpec } from "../../execution/attempt-dir.ts";
import { attemptDocuments } from "../../execution/attempt-documents.ts";
import type { OutputIssue } from "../../execution/output-issue.ts";
import { existingArtifacts } from "../../execution/own-place.ts";
import { memoryKilled } from "../../execution/shim/outcome.ts";
import { type AttemptSpec, type ExitRecord, FILES, logFile } from "../../execution/spool-records.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import type { Fence, Settlement, Started } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import type { EngineEnd } from "./engines/engine.ts";
import { changedInputs } from "./inputs.ts";
import { messageOf, type Patience } from "./patience.ts";
import { damageEvent, logDamage } from "./spool-damage.ts";

export interface Ending {
  readonly context: WorkerContext;
  readonly job: Job;
  readonly fence: Fence;
  readonly directory: string;
  readonly exit: ExitRecord;
  /** What the engine makes of that. */
  readonly end: EngineEnd;
  /** Where its start is not on record yet. */
  readonly started: Started | null;
  readonly patience: Patience;
  /** Aborted when this worker lets go of the attempt. */
  readonly signal: AbortSignal;
  /** Aborted when somebody asks for the job's end while its outputs are collected. */
  readonly canceled: AbortSignal;
}

/**
 * Make an ended attempt's records: collect outputs, write its documents, and commit all of it with the transition.
 * Nothing counts until that commit, so a worker that dies in between leaves files that the next try removes.
 *
 * @returns false where the end does not hold any more, and the engine has to be asked again
 */
export async function settle(given: Ending): Promise<boolean> {
  const { streams = given.exit.streams, ended_at = given.exit.ended_at } = given.end;
  const ending = { ...given, exit: { ...given.exit, streams, ended_at } };
  const { context, fence, directory, exit, end, patience } = ending;
  const jobDir = path.dirname(directory);
  clearMaking(directory);
  await patience.run(
    "remove what an earlier settlement left",
    () => removeUnrecorded(context, fence.job_id, jobDir),
    () => undefined,
  );
  const spec = await patience.run(
    "read spec.json",
    () => readSpec(directory),
    () => null,
  );
  const { artifacts: outputs, issues } = await patience.run(
    "collect its outputs",
    () => collect(ending, spec, jobDir),
    (cause) => ({
      artifacts: [],
      issues: patternsOf(ending).map(
        (pattern): OutputIssue => ({
          pattern,
          name: pattern,
          reason: "artifact_unreadable",
          detail: `nothing was collected: ${messageOf(cause)}`,
        }),
      ),
    }),
  );
  const changed = await patience.run(
    "look at its inputs",
    () => (exit.started_at === null ? [] : changedInputs(context, ending.job, fence.attempt)),
    () => [],
  );
  const { artifacts: documents, damages } = await documentsOf(ending, spec, jobDir, { artifacts: outputs, issues });
  const { stdout, stderr } = exit.streams;
  const essence = {
    ...(given.started === null ? {} : { started: given.started }),
    outcome: end.outputs.required ? withOutputs(end.outcome, issues) : end.outcome,
    ended_at: exit.ended_at,
    captures: { stdout: capture(stdout), stderr: capture(stderr) },
  };
  const events = [
    ...eventsOf({ ...exit, outcome: end.outcome }, issues),
    ...end.events,
    ...changed,
    ...logDamage(fence, directory, exit.streams),
    ...damages,
  ];
  return patience.run(
    "record its end",
    () => record(ending, { ...essence, artifacts: [...documents, ...outputs], events }),
    async (cause) => {
      await recordBarely(ending, essence, cause);
      return true;
    },
  );
}

/** False where the scheduler's job was to be left to go on, and somebody has asked for its end meanwhile. */
async function record({ context, fence, end }: Ending, settlement: Settlement): Promise<boolean> {
  try {
    await (end.retain === true ? context.store.retainSchedulerJob(fence, settlement) : context.store.settle(fence, settlement));
    return true;
  } catch (error) {
    if (end.retain !== true || !isRelayError(error, "state_conflict")) throw error;
    return false;
  }
}

/** The end without what came with it; where even that is refused, the job is put aside for a repair of the queue. */
function recordBarely(
  { context, fence, patience }: Ending,
  essence: Omit<Settlement, "artifacts" | "events">,
  cause: unknown,
): Promise<void> {
  const event = damageEvent(
    fence,
    "artifacts",
    `The attempt's artifacts and events could not be recorded: ${messageOf(cause)}`.slice(0, 2_000),
  );
  return patience.run(
    "record its bare end",
    async () => void (await context.store.settle(fence, { ...essence, artifacts: [], events: [event] })),
    async (again) => {
      await context.store.quarantine(fence.job_id, `the end of attempt ${fence.attempt} cannot be recorded: ${messageOf(again)}`);
      throw new RelayError("attempt_fenced", "it was put aside", { ...fence }, undefined, { cause: again });
    },
  );
}

const patternsOf = ({ exit, end }: Ending): readonly string[] => (exit.started_at === null ? [] : end.outputs.patterns);

function collect(ending: Ending, spec: AttemptSpec | null, jobDir: string): Promise<Collected> {
  const { context, job, fence, directory, end, signal, canceled } = ending;
  const elsewhere = end.outputs.directory;
  const workdir = "workdir" in job.spec ? job.spec.workdir : null;
  return collectOutputs({
    workdir: elsewhere ?? spec?.workdir ?? workdir ?? context.homeDir,
    startedIn: elsewhere === null ? (readProcess(directory)?.workdir ?? null) : null,
    patterns: patternsOf(ending),
    jobDir,
    storeMaxBytes: context.limits.artifactStoreBytes,
    minFreeBytes: context.limits.minFreeBytes,
    maxFiles: LIMITS.artifactsPerJob,
    attempt: fence.attempt,
    signal,
    canceled,
  });
}

/** The attempt's documents, or what is said in their place. */
async function documentsOf(
  { context, job, fence, directory, exit, end, patience, signal, canceled }: Ending,
  spec: AttemptSpec | null,
  jobDir: string,
  { artifacts: outputs, issues }: Collected,
): Promise<{ readonly artifacts: readonly NewArtifact[]; readonly damages: readonly NewEvent[] }> {
  const without = (about: string, why: string) => ({
    artifacts: [],
    damages: [damageEvent(fence, about, `${why}: the attempt leaves no documents (log_capture, provenance).`.slice(0, 2_000))],
  });
  if (spec === null) return without(FILES.spec, `${FILES.spec} is missing or cannot be read`);
  const script = "script" in job.spec ? job.spec.script : undefined;
  const made = async () => {
    const { artifacts, left } = await attemptDocuments({
      jobDir,
      attemptDir: directory,
      spec,
      exit: { ...exit, outcome: end.outcome },
      documents: end.documents,
      way: end.way,
      scriptSha256: script === undefined ? null : sha256Hex(script),
      outputs,
      issues,
      used: job.used_artifact_refs,
      relayVersion: context.version,
      hostname: readProcess(directory)?.process.hostname ?? os.hostname(),
      signal,
      canceled,
    });
    const damages = left.map((stream) =>
      damageEvent(fence, `${stream} artifact`, `${logFile(stream)} is no artifact: the job was canceled while it was read.`),
    );
    return { artifacts, damages };
  };
  return patience.run<Awaited<ReturnType<typeof made>> | ReturnType<typeof without>>("write its documents", made, (cause) =>
    without("documents", `its documents could not be written (${messageOf(cause)})`),
  );
}

const NOTHING: StreamCapture = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true };

/** End an attempt that has not started, or of which nobody can say whether it has. */
export async function settleUnstarted(
  { store, clock }: WorkerContext,
  fence: Fence,
  reason: Extract<OutcomeReason, "spawn_failed" | "outcome_unknown" | "canceled">,
  why: string,
): Promise<void> {
  const message = why.slice(0, 2_000);
  const events: NewEvent[] = reason === "outcome_unknown" ? [{ event_type: "execution.outcome_unknown", level: "error", message }] : [];
  await store.settle(fence, {
    outcome: { reason, exit_code: null, signal: null, message, residual: [] },
    ended_at: timestamp(clock),
    captures: { stdout: NOTHING, stderr: NOTHING },
    artifacts: [],
    events,
  });
}

const capture = ({ sha256: _sha256, ...rest }: ExitRecord["streams"]["stdout"]) => rest;

/** A command that succeeded without leaving what it declared has failed. */
function withOutputs(outcome: Outcome, issues: readonly OutputIssue[]): Outcome {
  if (outcome.reason !== "completed" || issues.length === 0) return outcome;
  if (issues.some(({ reason }) => reason === "canceled"))
    return { ...outcome, reason: "canceled", message: "canceled while its outputs were collected; the command itself had succeeded" };
  const lost = issues.filter((issue) => issue.reason !== "not_stored" && issue.reason !== "not_a_file");
  if (lost.length === 0) return outcome;
  const named = lost
    .slice(0, 5)
    .map((issue) => `${issue.name} (${issue.reason})`)
    .join(", ");
  return {
    ...outcome,
    reason: "output_missing",
    message:
      `the command succeeded, but declared outputs could not be kept: ${named}${lost.length > 5 ? `, and ${lost.length - 5} more` : ""}`.slice(
        0,
        2_000,
      ),
  };
}

function eventsOf(exit: ExitRecord, issues: readonly OutputIssue[]): NewEvent[] {
  const events: NewEvent[] = [];
  if (exit.outcome.reason === "timeout") {
    events.push({ event_type: "execution.timeout", level: "warning", message: exit.outcome.message });
  }
  if (exit.outcome.reason === "outcome_unknown") {
    events.push({ event_type: "execution.outcome_unknown", level: "error", message: exit.outcome.message });
  }
  if (exit.leftover > 0 && exit.outcome.reason !== "canceled" && exit.outcome.reason !== "timeout") {
    events.push({
      event_type: "execution.leftover",
      level: "warning",
      message:
        exit.leftover === 1
          ? "a process that the command had left running was ended with it"
          : `${exit.leftover} processes that the command had left running were ended with it`,
      payload: { count: exit.leftover },
    });
  }
  const { memory_kills: count = 0 } = exit;
  if (count > 0) {
    events.push({ event_type: "execution.out_of_memory", level: "warning", message: memoryKilled(count), payload: { count } });
  }
  const unfinished = LOG_STREAMS.filter((stream) => !exit.streams[stream].complete);
  if (unfinished.length > 0 && exit.outcome.reason !== "outcome_unknown") {
    events.push({
      event_type: "execution.output_incomplete",
      level: "warning",
      message: `the log of ${unfinished.join(" and ")} may lack its end: a process that is not the command's kept the pipe open, what writes to it was left to go on, or its shim was killed`,
      payload: { streams: unfinished },
    });
  }
  if (exit.outcome.residual.length > 0) {
    events.push({
      event_type: "execution.residual",
      level: "error",
      message:
        exit.outcome.residual.length === 1
          ? "a process could not be ended"
          : `${exit.outcome.residual.length} processes could not be ended`,
      payload: { pids: [...exit.outcome.residual] },
    });
  }
  for (const issue of issues.slice(0, 100)) {
    events.push({
      event_type: "artifact.refused",
      level: "warning",
      message: `${issue.name.slice(0, 500)}: ${issue.detail.slice(0, 1_000)}`,
      payload: { pattern: issue.pattern.slice(0, 4_096), name: issue.name.slice(0, 4_096), reason: issue.reason },
    });
  }
  return events;
}

/** Remove copies that an interrupted settlement left: no committed artifact names them. */
async function removeUnrecorded(context: WorkerContext, jobId: string, jobDir: string): Promise<void> {
  // What a link in its place leads to is somebody else's.
  const held = existingArtifacts(jobDir);
  if (held === null) return;
  using place = held;
  const names = fs.readdirSync(place.path);
  if (names.length === 0) return;
  const recorded = new Set<string>();
  for (let cursor = 1; ; ) {
    const page = await context.store.artifacts(jobId, { cursor, limit: LIMITS.pageMax });
    for (const artifact of page.items) recorded.add(artifact.artifact_id);
    if (page.items.length === 0) break;
    cursor = page.next_cursor;
  }
  for (const name of names) if (!recorded.has(name)) fs.rmSync(path.join(place.path, name), { force: true, recursive: true });
}

/** How many attempts in a row, up to the one before this, were void. No more are counted than it takes to give up. */
export async function voidsBefore(store: WorkerContext["store"], { job_id, attempt }: Fence): Promise<number> {
  const limit = Math.min(attempt - 1, LIMITS.startTries);
  if (limit === 0) return 0;
  const { items } = await store.attempts(job_id, { cursor: attempt - limit, limit });
  return items.length - 1 - items.findLastIndex(({ state }) => state !== "void");
}
