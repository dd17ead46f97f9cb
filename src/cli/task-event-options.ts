import type { NewTaskEventInput } from "../domain/task.ts";
import type { CliIo } from "./io.ts";
import { TASK_EVENT_STATUSES } from "./job-words.ts";
import { METADATA, metadataOf } from "./json-option.ts";
import { artifactId, oneOf, type Reader, text } from "./values.ts";
import { type FlagValues, list, option, optionOr, required } from "./verb.ts";

/** As a record takes it (domain/task.ts). */
const eventType: Reader<string> = {
  label: "TYPE",
  form: "lower case letters, digits, _ . and -, at most 128 of them",
  read: (given) => (/^[a-z0-9][a-z0-9_.-]{0,127}$/.test(given) ? given : undefined),
  hint: () => "such as input.checked",
};

/** Options of both verbs that add to a task's timeline. */
export const TASK_EVENT = {
  "event-type": required(eventType, "Kind of event: lower case letters, digits, _ . -"),
  label: required(text("LABEL"), "What it is about"),
  summary: required(text("TEXT"), "What happened, in one sentence"),
  status: optionOr(oneOf(...TASK_EVENT_STATUSES), "running" as const, "How it stands"),
  detail: option(text("TEXT"), "What the summary leaves out"),
  "path-ref": list(text("PATH"), "A path that it is about"),
  "artifact-ref": list(artifactId, "An artifact that it is about"),
  ...METADATA,
} as const;

/** The event that the options say. */
export const taskEventOf = (io: CliIo, flags: FlagValues<typeof TASK_EVENT>): NewTaskEventInput => ({
  event_type: flags["event-type"],
  label: flags.label,
  summary: flags.summary,
  status: flags.status,
  ...(flags.detail === undefined ? {} : { detail: flags.detail }),
  path_refs: [...flags["path-ref"]],
  artifact_refs: [...flags["artifact-ref"]],
  metadata: metadataOf(io, flags) as NonNullable<NewTaskEventInput["metadata"]>,
});
