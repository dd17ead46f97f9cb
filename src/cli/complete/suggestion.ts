import type { Reader, Suggestion } from "../values.ts";

/**
 * What may stand for the value of a reader. Where it does not say so itself, what help shows in its place does: FILE is a file, JOB a job.
 */
export function suggestionOf({ label, suggests }: Pick<Reader<unknown>, "label" | "suggests">): Suggestion | null {
  if (suggests !== undefined) return suggests;
  return Object.hasOwn(BY_LABEL, label) ? BY_LABEL[label]! : null;
}

const BY_LABEL: Readonly<Record<string, Suggestion>> = {
  FILE: "file",
  "FILE|URL": "file",
  DIR: "directory",
  JOB: "job",
  ARTIFACT: "artifact",
  "ARTIFACT|JOB": "artifact",
  "ARTIFACT=SHA256": "pinned artifact",
  TASK: "task",
};
