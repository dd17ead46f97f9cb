import type * as v from "valibot";
import type { JobReceipt } from "../domain/job.ts";
import type { Clusters } from "./clusters.ts";
import type { RemoteListing } from "./federation/federated.ts";
import type { LocalFiles } from "./local-files.ts";

/** Who is served: `user` is an agent; `admin` has every tool. */
export const PROFILES = ["user", "admin"] as const;
export type Profile = (typeof PROFILES)[number];

/** What an agent may expect of a call (ToolAnnotations of the protocol). All are hints. */
export interface ToolHints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

export const READS: ToolHints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
/** Adds something, and takes nothing away. */
export const ADDS: ToolHints = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false };
/** Runs what the caller says. */
export const RUNS: ToolHints = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
/** Ends something; twice does no more than once. */
export const ENDS: ToolHints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };

/** What a tool has around it while it answers. */
export interface ToolCall {
  readonly profile: Profile;
  readonly clusters: Clusters;
  /** The tools of servers on clusters, as they may be called now. */
  readonly remote: () => Promise<RemoteListing>;
  /** Files of this machine that may come along with a job; absent or null: none. */
  readonly files?: LocalFiles | null;
  /** Aborted when the client gives the call up. */
  readonly signal: AbortSignal;
  /**
   * Tell the client how far it is; nothing happens where it did not ask.
   *
   * @param progress greater than the last one
   */
  readonly progress: (progress: number, message: string) => void;
  readonly wantsProgress: boolean;
  /** Now, in milliseconds of a clock that never steps. */
  readonly now: () => number;
  /** What the client answered to what this call asked for before, by key; null of a first call. Nobody has looked at it. */
  readonly responses: Readonly<Record<string, unknown>> | null;
}

/** Ends a call that needs something of the client first; the call comes again, with its answers (SEP-2322). */
export class InputNeeded extends Error {
  /** @param requests of the protocol to the client, by key */
  constructor(readonly requests: Readonly<Record<string, { readonly method: string; readonly params: unknown }>>) {
    super("something is asked for first");
  }
}

/** The job that a call has brought about. */
export interface Submitted {
  readonly job: JobReceipt;
}

type Output = Readonly<Record<string, unknown>>;

/** One block of a tool's answer (ContentBlock of the protocol). */
export interface Content {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** A tool: what it is, what it takes, what comes back. */
export interface Tool<I extends v.GenericSchema = v.GenericSchema, O extends Output = Output> {
  readonly name: string;
  /** For people. */
  readonly title: string;
  /** The profile that has it, and `admin` has all. */
  readonly profile: Profile;
  /** What it does, when to use it, what comes back: all that an agent knows of it. */
  readonly description: string;
  readonly hints: ToolHints;
  /** Of an object. */
  readonly input: I;
  /** Of an object. What comes back has the members that it names, and no others. */
  readonly output: v.GenericSchema<unknown, O>;
  /** Which clusters its argument `cluster` can name: all, or those where agents may submit commands. Absent: it has no such argument. */
  readonly clusters?: "all" | "commands";
  readonly run: (args: v.InferOutput<I>, call: ToolCall) => Promise<O>;
  /** How its arguments are read where `input` does not say it. @throws RelayError request_validation_failed */
  readonly read?: (given: Readonly<Record<string, unknown>>) => v.InferOutput<I>;
  /** Whether what came back tells of a failure. Absent: never. */
  readonly failed?: (output: O) => boolean;
  /** What is shown of it besides the structure; the structure as text where nothing is said. */
  readonly content?: (output: O) => readonly Content[];
  /** Of a tool that submits a job and can be answered with a task: the submission alone; null where there is no job to this call. */
  readonly submit?: (args: v.InferOutput<I>, call: ToolCall) => Promise<Submitted | null>;
  /** Of a tool that can be answered with a task only. */
  readonly taskOnly?: true;
}

/** Fix the types of a tool from its schemas. */
export const defineTool = <const I extends v.GenericSchema, O extends Output>(tool: Tool<I, O>): Tool =>
  // What a tool takes was made by its own schema.
  tool as unknown as Tool;
