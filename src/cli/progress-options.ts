import { RelayError } from "../domain/errors.ts";
import type { NewProgressInput } from "../domain/progress.ts";
import type { CliIo } from "./io.ts";
import { METADATA, metadataOf } from "./json-option.ts";
import { decimal, text, whole } from "./values.ts";
import { type FlagValues, option, optionOr } from "./verb.ts";

/** Options of both verbs that report progress. */
export const PROGRESS = {
  label: optionOr(text("LABEL"), "progress", "What makes progress; the latest report of a label is the current one"),
  current: option(decimal, "How far"),
  total: option(decimal, "How far in all"),
  unit: option(text("UNIT"), "Unit of both"),
  message: option(text("TEXT"), "A few words"),
  "source-event-seq": option(whole(1, Number.MAX_SAFE_INTEGER), "Number of the event that it was read from"),
  ...METADATA,
} as const;

/** What says something; the rest says of what. */
const SAYING = ["current", "total", "message", "metadata-json", "metadata-json-file"] as const;

/** The report that the options say. @throws RelayError usage when they say nothing */
export function progressOf(io: CliIo, flags: FlagValues<typeof PROGRESS>): NewProgressInput {
  if (SAYING.every((name) => flags[name] === undefined))
    throw new RelayError("usage", "what is the progress?", {}, "--current with --total or without, or --message");
  return report(io, flags);
}

const report = (io: CliIo, flags: FlagValues<typeof PROGRESS>): NewProgressInput => ({
  label: flags.label,
  ...(flags.current === undefined ? {} : { current: flags.current }),
  ...(flags.total === undefined ? {} : { total: flags.total }),
  ...(flags.unit === undefined ? {} : { unit: flags.unit }),
  ...(flags.message === undefined ? {} : { message: flags.message }),
  ...(flags["source-event-seq"] === undefined ? {} : { source_event_seq: flags["source-event-seq"] }),
  metadata: metadataOf(io, flags) as NonNullable<NewProgressInput["metadata"]>,
});
