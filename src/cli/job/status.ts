import { EXIT } from "../../domain/errors.ts";
import { givenTitle, workTitle } from "../../domain/title.ts";
import { isTerminal } from "../../domain/transitions.ts";
import type { JarvisExecution, JobStatus } from "../../domain/views.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { withReason } from "../print/outcome-text.ts";
import { progressText } from "../print/progress-text.ts";
import { agoText, bytesText, durationText } from "../print/quantities.ts";
import { oneLine } from "../print/safe-text.ts";
import { observedLines, overtaken, schedulerText } from "../print/scheduler-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "Show where a job stands",
  details:
    "State, place in the queue, current attempt, what the scheduler says of it where one runs it, when it ended and how long that attempt took, latest progress and size of its output. Does not wait for anything.",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER },
  examples: [
    ["job status job_0123456789abcdef0123456789abcdef", "where it stands"],
    ["job status job_0123456789abcdef0123456789abcdef --json", "the whole document, for a program"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const status = await cluster.status(id);
    if (json) await printJson(io.stdout, status);
    else await printFields(io.stdout, statusFields(status, io.clock.now()));
    return EXIT.ok;
  },
});

/** The lines that people read. */
export function statusFields(
  { job, attempt, obstacle, relay_queue, scheduler, jarvis, inputs, progress, progress_truncated, logs, transform }: JobStatus,
  now: number,
) {
  const shim = attempt?.process ?? null;
  // A job that was canceled in the queue has no attempt; its last change was its end.
  const ended = isTerminal(job.state) ? (attempt?.ended_at ?? job.updated_at) : null;
  // A worker of an earlier version says nothing of it.
  const there = scheduler?.at(-1) ?? null;
  const ran = there !== null && there.attempt === attempt?.attempt ? attempt : undefined;
  const waits = job.not_before !== null && Date.parse(job.not_before) > now && !isTerminal(job.state);
  return [
    ["job", job.job_id],
    ["state", job.cancellation_request !== null && !isTerminal(job.state) ? `${job.state}, cancel requested` : job.state],
    ["kind", job.kind],
    ["name", givenTitle(job)],
    ["what", workTitle(job)],
    ["runs in", "workdir" in job.spec ? (job.spec.workdir ?? "the home directory of the worker's user") : null],
    ["cluster", job.cluster],
    ["submitted", `${job.created_at} (${agoText(job.created_at, now)})`],
    ["position", relay_queue.position === null || waits ? null : `${relay_queue.position} in its lane`],
    [
      "attempt",
      attempt === null
        ? null
        : `${attempt.attempt}, ${attempt.state}${attempt.started_at === null ? "" : `, started ${agoText(attempt.started_at, now)}`}`,
    ],
    ["scheduler", there === null ? null : schedulerText(there, ran)],
    ...(there === null || there.status === null || there.ended_at !== null || (ran !== undefined && overtaken(there, ran))
      ? []
      : observedLines(there.status, now)),
    ["JARVIS", jarvis == null ? null : jarvisText(jarvis, isTerminal(job.state))],
    ["ended", ended === null ? null : `${ended} (${agoText(ended, now)})`],
    ["duration", ended === null ? null : lasted(beganAt({ job, attempt, scheduler }), ended)],
    ["process", shim === null ? null : `${shim.pid} on ${shim.hostname}`],
    ["last failure", isTerminal(job.state) ? null : job.last_error],
    ["next try", waits ? job.not_before : null],
    ...inputs.map((input) => ["input", inputText(input)] as const),
    ["outcome", job.outcome === null ? null : withReason(job.outcome.reason, job.outcome.message)],
    ["obstacle", obstacle],
    ["quarantine", job.quarantine],
    // A worker of an earlier version says nothing of it.
    ["transform", !transform ? null : `${transform.replay}: ${transform.replay_reason}`],
    ...progress.map((report) => ["progress", progressText(report)] as const),
    ...(progress_truncated ? [["progress", "more than is shown here; job progress lists all of it"] as const] : []),
    ...logs.map((log) => [log.stream, `${bytesText(log.size_bytes)}${dropped(log.capture)}`] as const),
  ] as const;
}

/** States of a record of JARVIS' that does not change any more. */
const JARVIS_ENDS: ReadonlySet<string> = new Set(["scripted", "completed", "failed", "canceled"]);

/** The run's id, which JARVIS' own commands take, and what JARVIS says of it: one that was killed has not said that it ended. */
function jarvisText({ execution_id, said }: JarvisExecution, isOver: boolean): string {
  if (said === null) return execution_id;
  const text = `${execution_id}, pipeline ${oneLine(said.pipeline_id)}: ${oneLine(said.state)}`;
  return isOver && !JARVIS_ENDS.has(said.state) ? `${text} was its last word before the end` : text;
}

const inputText = ({ name, logical_name, size_bytes, sha256 }: JobStatus["inputs"][number]): string =>
  `${name}: ${logical_name}, ${bytesText(size_bytes)}, SHA-256 ${sha256.slice(0, 16)}…`;

/** When what the last attempt ran began: a pipeline in an allocation with that, which is later than what submitted it. */
function beganAt({ job, attempt, scheduler }: Pick<JobStatus, "job" | "attempt" | "scheduler">): string | null {
  const there = job.kind === "jarvis" ? scheduler?.find((one) => one.attempt === attempt?.attempt) : undefined;
  return there?.status?.start_time ?? attempt?.started_at ?? null;
}

/** Null for what never began; a scheduler counts whole seconds by a clock of its own. */
const lasted = (start: string | null, end: string): string | null =>
  start === null ? null : durationText(Math.max(0, Date.parse(end) - Date.parse(start)) / 1_000);

const dropped = (capture: JobStatus["logs"][number]["capture"]): string =>
  capture === null || capture.dropped === 0 ? "" : `, ${bytesText(capture.dropped)} dropped (${capture.truncated})`;
