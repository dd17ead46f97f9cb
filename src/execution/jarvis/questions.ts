import type * as v from "valibot";
import { lastLine } from "./command.ts";
import { ExecutionArtifacts, ExecutionProgress, ExecutionRecord, type Read, readDocument, ServiceRuntimes } from "./documents.ts";
import { atSite, type JarvisProgram, type JarvisSite } from "./program.ts";

/** The verbs that print a document about an execution, with its shape. */
export const QUESTIONS = {
  get: ExecutionRecord,
  progress: ExecutionProgress,
  artifacts: ExecutionArtifacts,
  "service-runtimes": ServiceRuntimes,
} as const;
export type Question = keyof typeof QUESTIONS;
export type DocumentOf<Q extends Question> = v.InferOutput<(typeof QUESTIONS)[Q]>;

/** `document` in `read`; `none`: JARVIS says that it has nothing of that; `silent`: no answer, so that nothing is known. */
export type Answered<T> = { readonly kind: "read"; readonly read: Read<T> } | { readonly kind: "none" | "silent"; readonly said: string };

const ANSWER_MS = 30_000;
/** A record takes 64 KiB at most; lists of artifacts take more. */
const ANSWER_MAX_LENGTH = 1024 * 1024;

/** One execution, by the names that JARVIS knows it by. */
export interface ExecutionName {
  readonly executionId: string;
  readonly pipelineId: string;
}

/** `jarvis execution VERB ID --pipeline-id P +json`: one line of JSON, or exit code 1 and words. */
export async function ask<Q extends Question>(
  site: JarvisSite,
  { file }: JarvisProgram,
  question: Q,
  { executionId, pipelineId }: ExecutionName,
): Promise<Answered<DocumentOf<Q>>> {
  const end = await site.run(atSite(site, [file, "execution", question, executionId, "--pipeline-id", pipelineId, "+json"], ANSWER_MS));
  if (end.kind !== "ended") return { kind: "silent", said: lastLine(end) };
  const line = end.stdout.split("\n").findLast((one) => one.trim() !== "") ?? "";
  if (end.code !== 0) return { kind: "none", said: lastLine(end) };
  if (end.cut || line.length > ANSWER_MAX_LENGTH)
    return { kind: "silent", said: `its answer takes more than ${ANSWER_MAX_LENGTH} characters` };
  const schema = QUESTIONS[question] as unknown as v.GenericSchema<unknown, DocumentOf<Q>>;
  return { kind: "read", read: readDocument<DocumentOf<Q>>(schema, line, executionId) };
}
