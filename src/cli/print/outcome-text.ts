import type { Job } from "../../domain/job.ts";
import { oneLine } from "./safe-text.ts";
import { type Style, stateColour } from "./style.ts";

/** `failed: exited with code 1`; where the message says no more than the word before it, the word alone. */
export const withReason = (word: string, message: string): string => (message === word ? word : `${word}: ${oneLine(message)}`);

/** One line on where a job stands, and why where it is over. */
export function endLine(style: Style, job: Pick<Job, "job_id" | "state" | "outcome">): string {
  const text = job.outcome === null ? job.state : withReason(job.state, job.outcome.message);
  return `${job.job_id} ${stateColour(style, job.state)}${text.slice(job.state.length)}`;
}
