import type { NewEvent } from "../../domain/event.ts";
import type { Outcome } from "../../domain/job.ts";
import type { ExecutionRecord, Handle, Read } from "./documents.ts";
import type { Answered } from "./questions.ts";

/** Packages that report success whatever the exit code of what they run was. */
export const MUTE_PACKAGES: ReadonlySet<string> = new Set(["builtin.my_shell"]);

/** What is known when the run's own process has ended. */
export interface Evidence {
  readonly executionId: string;
  /** How the process ended, as its shim says. */
  readonly exit: Outcome;
  /** When it had started. */
  readonly startedAt: string;
  readonly record: Answered<ExecutionRecord>;
  /** The last line of its output; null where the log does not have it (any more). */
  readonly handle: Read<Handle> | null;
  readonly lastLine: string;
  /** Packages of the pipeline that MUTE_PACKAGES has. */
  readonly mute: readonly string[];
}

export interface Verdict {
  readonly outcome: Outcome;
  readonly events: readonly NewEvent[];
}

const MESSAGE_MAX = 2_000;

/** How a run on the worker's host ended: who is believed, docs/jarvis.md. */
export function directVerdict(evidence: Evidence): Verdict {
  const { exit, record } = evidence;
  const known = record.kind === "read" && "document" in record.read ? record.read.document : null;
  // Somebody ended it, or never started it: JARVIS learned nothing of that.
  if (!["completed", "exit_nonzero", "outcome_unknown"].includes(exit.reason)) return { outcome: exit, events: [] };
  if (known !== null && isOlder(known, evidence.startedAt)) return failed(evidence, ...foreign(evidence));
  if (exit.reason === "outcome_unknown")
    return known?.terminal === true ? told(evidence, known, `${exit.message}; JARVIS says`) : { outcome: exit, events: [] };
  if (known !== null && known.state === "failed") return told(evidence, known, "JARVIS says");
  if (exit.reason === "exit_nonzero")
    return record.kind === "none" ? refused(evidence) : failed(evidence, `JARVIS ended with ${exit.exit_code}: ${evidence.lastLine}`);
  return completed(evidence, known);
}

function completed(evidence: Evidence, known: ExecutionRecord | null): Verdict {
  const { handle, exit } = evidence;
  if (known === null && (handle === null || "refused" in handle)) {
    const why = handle === null ? "its last line is not in the log" : handle.refused;
    return failed(evidence, `JARVIS ended with 0, but there is neither a handle of ${evidence.executionId} (${why}) nor a record of it`);
  }
  if (known === null)
    return {
      outcome: exit,
      events: [untrusted("JARVIS' record of the run cannot be had; that it ended well is its exit code's word, and its handle's")],
    };
  if (known.state !== "completed") return failed(evidence, `JARVIS ended with 0, but its record says ${known.state}`);
  if (handle !== null && "refused" in handle) return failed(evidence, `JARVIS ended with 0 without a handle: ${handle.refused}`);
  return quiet(evidence);
}

/** The run ended well, as far as its packages say so. */
function quiet({ exit, mute }: Evidence): Verdict {
  if (mute.length === 0) return { outcome: exit, events: [] };
  const said = `${mute.join(", ")} of builtin.my_shell ${mute.length === 1 ? "does" : "do"} not report exit codes, so that a failure in there is not seen`;
  return { outcome: { ...exit, message: `${exit.message}; ${said}`.slice(0, MESSAGE_MAX) }, events: [untrusted(said)] };
}

/** The record is terminal, and counts. */
function told(evidence: Evidence, record: ExecutionRecord, who: string): Verdict {
  const { exit } = evidence;
  if (record.state === "completed")
    return { outcome: { ...exit, reason: "completed", exit_code: 0, message: `${who} completed`.slice(0, MESSAGE_MAX) }, events: [] };
  if (record.state === "canceled")
    return { outcome: { ...exit, reason: "canceled", message: `${who} canceled`.slice(0, MESSAGE_MAX) }, events: [] };
  return failed(evidence, `${who}: ${record.error ?? record.state}`);
}

function foreign({ executionId }: Evidence): [string] {
  return [`the execution id ${executionId} was in use before this run began: JARVIS takes each only once`];
}

function refused(evidence: Evidence): Verdict {
  const verdict = failed(evidence, `JARVIS refused the run: ${evidence.lastLine}`);
  const event: NewEvent = { event_type: "jarvis.dispatch_refused", level: "error", message: verdict.outcome.message };
  return { ...verdict, events: [event] };
}

const failed = ({ exit }: Evidence, message: string): Verdict => ({
  outcome: { ...exit, reason: "engine_failed", message: message.slice(0, MESSAGE_MAX) },
  events: [],
});

export const untrusted = (message: string): NewEvent => ({
  event_type: "runtime.metadata_untrusted",
  level: "warning",
  message: message.slice(0, MESSAGE_MAX),
});

/** Both are of this host's clock; ours has milliseconds. */
const isOlder = ({ created_at }: ExecutionRecord, startedAt: string): boolean => Date.parse(created_at) + 1_000 < Date.parse(startedAt);
