import path from "node:path";
import type { McpPhase, McpResult } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { type CallAnswer, errorAnswer, resultAnswer, toolsAnswer } from "./answer.ts";
import { CallOutput, type OutputSinks } from "./call-output.ts";
import { callTool } from "./call-tool.ts";
import { HeldServer, type ReadyServer, type ServerAround } from "./held-server.ts";
import { InputRounds } from "./input-rounds.ts";
import { listTools } from "./list-tools.ts";
import { ProgressReports } from "./progress-reports.ts";
import { CALL_FILES, type McpRequest } from "./request-file.ts";

/** Where one call reports, and where it is told. */
export interface CallPlace {
  /** The attempt's directory. */
  readonly directory: string;
  /** Of its reports. */
  readonly eventsDir: string;
  readonly sinks: OutputSinks;
  /** Aborted with what ends the call. */
  readonly signal: AbortSignal;
}

/** A call that has come to its end, one way or the other. */
export interface CallEnd {
  readonly result: McpResult;
  /** The artifact that `result.answer.content` names. */
  readonly content: string | null;
}

/** Start a server, ask it one thing, and see to its end. */
export function oneCall(around: ServerAround, place: CallPlace): Promise<CallEnd> {
  const server = new HeldServer();
  return callOn(server, around, place, () => server.end(place.signal.aborted));
}

/**
 * Ask a server one thing; it is started where it does not run.
 *
 * @param after called with the answer, before its document is made: it may end the server, whose last words count
 */
export async function callOn(
  server: HeldServer,
  around: ServerAround,
  place: CallPlace,
  after: (answer: CallAnswer) => Promise<void>,
): Promise<CallEnd> {
  const { request } = around;
  const output = new CallOutput(place.sinks);
  const inputs = inputRounds(request, place);
  const asked: Asked = { phase: "start", sent: false, answerMs: null };
  const methods = (method: string, params: JsonObject) => answerOf(inputs, method, params);
  const onFound = (): void => {
    asked.phase = "handshake";
  };
  let answer: CallAnswer;
  try {
    const use = { output, methods, signal: place.signal };
    const question = { request, place, inputs, asked };
    answer = await askedOf(server, () => server.ready(around, use, onFound), question);
  } catch (error) {
    answer = errorAnswer(error);
  }
  const { calls, established } = server;
  await after(answer);
  return { content: answer.content, result: resultOf(request, established, asked, answer, output, calls) };
}

const inputRounds = ({ spec }: McpRequest, { directory, eventsDir, signal }: CallPlace): InputRounds =>
  new InputRounds(eventsDir, path.join(directory, CALL_FILES.answers), spec.tool ?? spec.operation, signal);

/** What a server asks of its client in the protocol's earlier versions. */
function answerOf(inputs: InputRounds, method: string, params: JsonObject): Promise<JsonObject> | null {
  return method === "elicitation/create" ? inputs.ask([{ method, params }]).then(([first]) => first!) : null;
}

interface Asked {
  phase: McpPhase;
  sent: boolean;
  answerMs: number | null;
}

interface Question {
  readonly request: McpRequest;
  readonly place: CallPlace;
  readonly inputs: InputRounds;
  readonly asked: Asked;
}

/**
 * The answer of a server that runs. One that has waited for a call, and turns out to take no input any more, has not read the request, whose line did not reach its end:
 * another one is started, and asked in its place.
 */
async function askedOf(server: HeldServer, ready: () => Promise<ReadyServer>, question: Question): Promise<CallAnswer> {
  const first = await ready();
  const { dialogue } = first;
  const before = dialogue.requests;
  try {
    return await ask(first, question);
  } catch (error) {
    const isUnread = dialogue.unread && dialogue.requests === before + 1;
    if (isUnread) Object.assign(question.asked, { phase: "start", sent: false });
    if (!isUnread || server.calls === 1) throw error;
    await server.end();
    return ask(await ready(), question);
  }
}

async function ask({ dialogue, session }: ReadyServer, { request, place, inputs, asked }: Question): Promise<CallAnswer> {
  const { spec } = request;
  const { signal, eventsDir } = place;
  asked.phase = "call";
  asked.sent = true;
  const begun = performance.now();
  const done = <T>(value: T): T => {
    asked.answerMs = performance.now() - begun;
    asked.phase = "done";
    return value;
  };
  if (spec.tool === null) return toolsAnswer(done(await listTools(dialogue, session, signal)));
  const reports = new ProgressReports(eventsDir, spec.tool);
  try {
    const call = {
      tool: spec.tool,
      arguments: spec.arguments,
      inputs,
      signal,
      onProgress: (report: Parameters<typeof reports.take>[0]) => reports.take(report),
    };
    return resultAnswer(done(await callTool(dialogue, session, call)));
  } finally {
    reports.end();
  }
}

function resultOf(
  { spec, execution_fingerprint }: McpRequest,
  { artifact, session, handshakeMs }: HeldServer["established"],
  { phase, sent, answerMs }: Asked,
  { answer }: CallAnswer,
  output: CallOutput,
  serverCall: number,
): McpResult {
  return {
    schema_version: "clio-relay.mcp-result.v1",
    operation: spec.operation,
    tool: spec.tool,
    execution_fingerprint,
    contract: spec.expected_registered_contract,
    server_artifact: artifact,
    server: session?.shown ?? null,
    phase,
    sent,
    answer,
    output: output.counts,
    timing: { handshake_ms: handshakeMs, answer_ms: answerMs },
    server_call: serverCall,
  };
}
