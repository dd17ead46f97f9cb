import type { JobSubmission } from "./job.ts";

const TITLE_MAX = 512;

type Titled = Pick<JobSubmission, "kind" | "spec"> & Partial<Pick<JobSubmission, "metadata">>;

/** A short name of a job for lists: the one that its submitter gave it, else that of its work. One line. */
export const titleOf = (submission: Titled): string => givenTitle(submission) ?? workTitle(submission);

/** The name that its submitter gave it, as its metadata have it (`title`); null where there is none. */
export function givenTitle({ metadata }: Pick<Titled, "metadata">): string | null {
  const title = metadata?.["title"];
  return typeof title === "string" && title.trim() !== "" ? bounded(title.trim()) : null;
}

/** The command line, lines of an argument joined by a mark, or what another kind of job is about. */
export const workTitle = (submission: Titled): string => bounded(workOf(submission as JobSubmission));

function bounded(text: string): string {
  const title = oneLine(text);
  return (title.length > TITLE_MAX ? `${title.slice(0, TITLE_MAX - 1)}…` : title).toWellFormed();
}

function workOf(submission: JobSubmission): string {
  switch (submission.kind) {
    case "command":
      return submission.spec.argv === undefined ? scriptName(submission) : commandLine(submission.spec.argv);
    case "jarvis":
      return submission.spec.pipeline_name ?? submission.spec.pipeline_path ?? pipelineName(submission.spec.pipeline_yaml ?? "");
    case "remote_agent":
      return submission.spec.prompt_path ?? promptName(submission);
    case "mcp_call":
      return `${submission.spec.server} ${submission.spec.tool ?? submission.spec.operation}`;
    case "input_ingest":
      return submission.spec.logical_name;
  }
}

/** Quoted as POSIX shells need it, up to where a title ends anyway. */
function commandLine(argv: readonly string[]): string {
  let line = "";
  for (const argument of argv) {
    line += line === "" ? quoted(argument) : ` ${quoted(argument)}`;
    if (line.length > TITLE_MAX) break;
  }
  return line;
}

const PLAIN = /^[\p{L}\p{N}_@%+=:,./-]+$/u;
const quoted = (argument: string): string => {
  const shown = onOneLine(argument.slice(0, 4 * TITLE_MAX)).slice(0, TITLE_MAX + 1);
  return PLAIN.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
};

/** A text of several lines from its first word on, with a mark where one ends: a space would make one command of two. */
const onOneLine = (text: string): string => (text.includes("\n") ? text.trim().replaceAll(/[ \t]*[\r\n]\s*/g, " ↵ ") : text);

/** The name of the file that a script came from, as its submitter gave it in the metadata; else its first line. */
function scriptName({ spec, metadata }: JobSubmission & { readonly kind: "command" }): string {
  const name = metadata?.["script_name"];
  return typeof name === "string" && name !== "" ? name : firstLine(spec.script ?? "");
}

/** The name that a pipeline's text has for itself, where it stands on a line of its own; it is not read as YAML for that. */
function pipelineName(text: string): string {
  const name = /^name:[ \t]+(["']?)([A-Za-z0-9._-]{1,128})\1[ \t]*(?:#.*)?\r?$/m.exec(text.slice(0, 16 * TITLE_MAX))?.[2];
  return name ?? "pipeline";
}

/** The name of the file that a prompt came from, as its submitter gave it in the metadata. */
function promptName({ metadata }: JobSubmission): string {
  const name = metadata?.["prompt_name"];
  return typeof name === "string" && name !== "" ? name : "agent";
}

/** The first line of a script that says something: neither empty nor a comment. */
function firstLine(script: string): string {
  const lines = script.slice(0, 16 * TITLE_MAX).split("\n");
  const telling = lines.map((line) => line.trim()).find((line) => line !== "" && !line.startsWith("#"));
  return telling || lines[0]?.trim() || "script";
}

/** Control characters are shown escaped, so that a title can neither break a list nor reach a terminal. */
const oneLine = (text: string): string =>
  text
    .slice(0, 2 * TITLE_MAX)
    .replace(/\p{Cc}/gu, (c) => (c === "\n" ? "\\n" : c === "\t" ? "\\t" : `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`));
