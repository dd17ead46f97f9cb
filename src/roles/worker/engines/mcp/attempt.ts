import path from "node:path";
import * as v from "valibot";
import type { Outcome } from "../../../../domain/job.ts";
import { MCP_LIMITS, type McpAnswer, McpResult, type McpReuse } from "../../../../domain/mcp-call.ts";
import type { McpCallSpec } from "../../../../domain/specs.ts";
import { flushWay } from "../../../../execution/attempt-documents.ts";
import type { LaunchedShim } from "../../../../execution/launcher.ts";
import { CALL_FILES, requestText } from "../../../../execution/mcp-call/request-file.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import type { ExitRecord } from "../../../../execution/spool-records.ts";
import { canonicalJson } from "../../../../lib/digest.ts";
import { readRegular } from "../../../../lib/files/regular-file.ts";
import { self } from "../../../../lib/system/process-identity.ts";
import type { EngineAround, EngineAttempt, EngineDocument, EngineEnd, EnginePlan } from "../engine.ts";
import { recordedEnd } from "../engine.ts";
import { InputAnswers } from "./input-answers.ts";
import type { WarmLaunch, WarmServers } from "./warm-servers.ts";

/** A list of tools, with what the document has besides. */
const RESULT_MAX_BYTES = MCP_LIMITS.responseBytes + 1024 * 1024;
/** For so long a cancel is the call's alone: it tells the server, and waits for its end. */
const LEAVE_SECONDS = 3;
/** How long a call of a kept server may take whose start need not be recorded by itself: as long as output waits, too. */
const BRIEF_MS = 50;

/** Whether a call is for a server that is kept. A list is about the program that is there now. */
export const keepsServer = ({ reuse, operation }: Pick<McpCallSpec, "reuse" | "operation">): boolean =>
  reuse !== null && operation !== "tools/list";

/** One call, as it is to be run. */
export interface PlannedCall {
  readonly spec: McpCallSpec;
  readonly fingerprint: string;
}

/** One call of an MCP server. */
export class McpAttempt implements EngineAttempt {
  readonly #answers: InputAnswers;

  #launched: WarmLaunch | null = null;
  /** The flush of the way to what it leaves. */
  #way: Promise<void> | null = null;
  /** What is kept of its server once its end is on record; undefined before that is known. */
  #kept: McpReuse | null | undefined;

  /** @param planned may refuse, as EngineAttempt.plan */
  constructor(
    private readonly around: EngineAround<"mcp_call">,
    private readonly planned: () => PlannedCall,
    private readonly warm: WarmServers,
  ) {
    this.#answers = new InputAnswers(around);
  }

  async plan(): Promise<EnginePlan> {
    const { context, directory } = this.around;
    const { spec, fingerprint } = this.planned();
    const request = requestText({ spec, execution_fingerprint: fingerprint, worker: self() });
    return {
      argv: [...context.command, "__mcp-call", path.join(directory, CALL_FILES.request)],
      files: { [CALL_FILES.request]: request },
      env: {},
      workdir: null,
      login: false,
      timeout_seconds: spec.timeout_seconds,
      first_alone_seconds: LEAVE_SECONDS,
    };
  }

  launch(): Promise<LaunchedShim> | null {
    const { directory } = this.around;
    const { spec, fingerprint } = this.planned();
    // A shim that keeps a server is told its attempts' directories in lines.
    if (!keepsServer(spec) || directory.includes("\n")) return null;
    const { reuse, expected_server_artifact_digest: digest } = spec;
    const key = canonicalJson({ fingerprint, digest, reuse });
    return this.warm.launch(key, directory).then((launched) => {
      this.#launched = launched;
      // While the call is made. Whoever needs it meets what it failed for.
      this.#way = flushWay(path.dirname(directory));
      this.#way.catch(() => undefined);
      return launched;
    });
  }

  get briefMs(): number {
    return this.#launched === null ? 0 : BRIEF_MS;
  }

  async look(): Promise<void> {
    await this.#answers.hand();
  }

  async end(exit: ExitRecord): Promise<EngineEnd> {
    const text = exit.started_at === null ? null : this.#read(CALL_FILES.result, RESULT_MAX_BYTES);
    const result = text === null ? null : parsed(text);
    // Its shim has ended the server of a call that failed, and ends itself.
    const isKept = result !== null && result.answer.kind !== "failure";
    this.#kept = isKept ? this.around.job.spec.reuse : null;
    const way = keepsServer(this.around.job.spec) ? { way: () => this.#flushedWay() } : {};
    const recorded = { ...recordedEnd(exit), ...way };
    if (text === null || result === null) return { ...recorded, outcome: withoutResult(exit) };
    const { answer } = result;
    const documents: EngineDocument[] = [{ kind: "mcp_result", name: CALL_FILES.result, text }];
    if (answer.kind === "result" && answer.content !== null) {
      const content = this.#read(CALL_FILES.content, MCP_LIMITS.responseBytes);
      if (content !== null) documents.push({ kind: "execution_output", name: CALL_FILES.content, text: content });
    }
    return { ...recorded, outcome: outcomeOf(exit.outcome, answer), documents };
  }

  async close(): Promise<void> {
    // Not before: nobody who waits for the end has to wait for a look at the server.
    if (this.#kept !== undefined) this.#launched?.release(this.#kept);
  }

  /** @throws the system's error; then it is begun anew the next time */
  async #flushedWay(): Promise<void> {
    this.#way ??= flushWay(path.dirname(this.around.directory));
    try {
      await this.#way;
    } catch (error) {
      this.#way = null;
      throw error;
    }
  }

  #read(name: string, max: number): string | null {
    const read = ofAttemptFile(path.join(this.around.directory, name), (file) => readRegular(file, max), "absent" as const);
    return typeof read === "string" ? null : read.text;
  }
}

function parsed(text: string): McpResult | null {
  try {
    const result = v.safeParse(McpResult, JSON.parse(text));
    return result.success ? result.output : null;
  } catch {
    return null;
  }
}

/** The call itself came to no word of its end: it was killed, or had no room for it; or what it left is gone, as after a crash of the machine. */
function withoutResult({ outcome, started_at }: ExitRecord): Outcome {
  if (started_at === null) return outcome;
  if (outcome.reason === "completed")
    return { ...outcome, reason: "outcome_unknown", exit_code: null, message: "the call was made, and what came of it is lost" };
  if (outcome.reason !== "exit_nonzero") return outcome;
  return { ...outcome, reason: "engine_failed", message: "the call left no result; its standard error may say why" };
}

/** What the shim knows of a cancel, of the time limit and of a signal comes first. */
function outcomeOf(recorded: Outcome, answer: McpAnswer): Outcome {
  if (recorded.reason !== "completed" && recorded.reason !== "exit_nonzero") return recorded;
  const failed = failureOf(answer);
  if (failed === null) return { ...recorded, reason: "completed", message: "" };
  return { ...recorded, reason: "engine_failed", message: failed.slice(0, 2_000).toWellFormed() };
}

/** One sentence; null where nothing failed. */
function failureOf(answer: McpAnswer): string | null {
  switch (answer.kind) {
    case "tools":
      return null;
    case "result":
      return answer.is_error ? `the tool says that it failed${said(answer)}` : null;
    case "error":
      return `the server refused the request (${answer.error.code}): ${answer.error.message}`;
    case "failure":
      return `${answer.reason}: ${answer.message}`;
  }
}

function said({ result, preview }: Extract<McpAnswer, { kind: "result" }>): string {
  const content = result?.["content"];
  const [first] = Array.isArray(content) ? content : [];
  const text = preview ?? (first !== null && typeof first === "object" && "text" in first ? String(first["text"]) : "");
  return text === "" ? "" : `: ${text}`;
}
