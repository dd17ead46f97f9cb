import type { CancelOutcome, NativeJob, SubmitOutcome } from "./provider.ts";
import { isActive, type Row } from "./rows.ts";
import { lastWords, type SiteCommandEnd } from "./site-command.ts";

/** A code by which a site's wrapper says that a program below it was ended by a signal (sh(1)): nobody knows how far it had come. Above are those of exit(-1) and the like. */
const isBySignal = (code: number): boolean => code > 128 && code <= 128 + 64;
const SAID_MAX = 1_024;

/**
 * What became of a submission, by how the command ended and by the one line of its output that is an id. Warnings before and behind it do not matter; several such
 * lines, or one of a command that says it failed, are a doubt.
 *
 * @param idIn the job that a line names; null where it is no id
 */
export function submitOutcome(end: SiteCommandEnd, idIn: (line: string) => NativeJob | null): SubmitOutcome {
  const said = lastWords(end, SAID_MAX);
  if (end.kind === "missing") return { kind: "refused", said };
  if (end.kind === "killed") return { kind: "doubt", said };
  const natives = end.stdout.split("\n").flatMap((line) => idIn(line) ?? []);
  if (end.code !== 0) return { kind: natives.length > 0 || isBySignal(end.code) ? "doubt" : "refused", said };
  if (natives.length !== 1) return { kind: "doubt", said: `it ended well and named ${natives.length === 0 ? "no job" : "several jobs"}` };
  return { kind: "accepted", native: natives[0]!, said: end.stderr.trim().slice(-SAID_MAX) };
}

/** What became of a cancel, by how the command ended. */
export function cancelOutcome(end: SiteCommandEnd): CancelOutcome {
  const said = lastWords(end, SAID_MAX);
  if (end.kind === "killed") return { kind: "doubt", said };
  return end.kind === "ended" && end.code === 0 ? { kind: "asked", said: end.stderr.trim().slice(-SAID_MAX) } : { kind: "refused", said };
}

/** Why nothing is sent to a job: ids are used again, and what has not the name is somebody else's. Null where it is ours, and active. */
export function notOurs(
  id: string,
  marker: string,
  answer: { readonly rows: readonly Row[] } | { readonly failure: string },
): CancelOutcome | null {
  if ("failure" in answer) return { kind: "doubt", said: `nothing was sent, because nobody says whose job ${id} is: ${answer.failure}` };
  const row = answer.rows.find(({ raw, shown, name }) => (raw === id || shown === id) && name === marker);
  if (row === undefined) return { kind: "refused", said: `there is no job ${id} of the name ${marker}` };
  return isActive(row) ? null : { kind: "refused", said: `job ${id} has ended: ${row.answers.raw_state ?? row.phase}` };
}
