import {
  type CallToolResult,
  inputRequired,
  type JSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  UnsupportedProtocolVersionError,
} from "@modelcontextprotocol/server";
import { isRelayError } from "../domain/errors.ts";
import { inUnicode } from "../lib/text/unicode-json.ts";
import { failureAnswer, type ToolAnswer } from "./answer.ts";
import { runTool, submitTool } from "./dispatch.ts";
import { pageOf } from "./federation/listing.ts";
import { CallProgress } from "./progress.ts";
import { INSTRUCTIONS, servePrompts } from "./prompts.ts";
import { protocolError } from "./protocol-error.ts";
import { serveResources } from "./resources/methods.ts";
import type { McpService } from "./service.ts";
import { declaresTasks, missingTasks, serveTasks, TASKS_EXTENSION } from "./tasks/methods.ts";
import { seedOf } from "./tasks/projection.ts";
import { InputNeeded, type Submitted, type Tool, type ToolCall } from "./tool.ts";

/** Meta of tools/list: SHA-256 over what it lists. Of tools/call: that of the list in which the tool was found, where the connection does not say it. */
const CATALOG_REVISION = "clio-relay/catalog-revision";

type Era = "legacy" | "modern";
/** Versions whose requests say which one they are of. */
const MODERN_VERSIONS = ["2026-07-28"];
type Handler = (request: JSONRPCRequest, ctx: ServerContext) => Promise<Result>;

/** Carries a task past what the SDK does with the result of a tool: there is no content yet. */
class TaskAnswer extends Error {
  constructor(readonly answer: Result) {
    super("answered with a task");
  }
}

/** What a client has of the tools, and was told of them. */
class Shown {
  /** Revision of the list that it was given last. */
  bound: string | null = null;
  #told: string | null = null;

  constructor(private readonly tell: () => void) {}

  listed(revision: string): void {
    this.bound = revision;
    this.#told = null;
  }

  /** Tell of another list, once of each, whoever has listed. @param revision of what is listed now; null: not known */
  now(revision: string | null): void {
    if (this.bound === null || (revision !== null && (revision === this.bound || revision === this.#told))) return;
    this.#told = revision;
    this.tell();
  }
}

/** A server of the protocol, which is told of changes of the tools. @see McpService.watchTools */
export type ToldServer = Server & { toolsAre(revision: string | null): void };

/** Requests whose params were taken, by what came with them: what fails after that is no fault of theirs. */
const REACHED = new WeakSet<ServerContext>();
const SHOWN = 1_000;

const unfitParams = (method: string, thrown: unknown): ProtocolError => {
  const why = thrown instanceof Error ? `: ${thrown.message}` : "";
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Invalid params for ${method}${why}`.slice(0, SHOWN));
};

/** Each request of the later versions says its own; the SDK looks at that of a connection's first one. @throws UnsupportedProtocolVersionError */
function refuseVersion(envelope: unknown): void {
  const requested: unknown = (envelope as Readonly<Record<string, unknown>> | undefined)?.[PROTOCOL_VERSION_META_KEY];
  if (typeof requested !== "string" || MODERN_VERSIONS.includes(requested)) return;
  throw new UnsupportedProtocolVersionError({ supported: MODERN_VERSIONS, requested });
}

class RelayServer extends Server {
  readonly shown = new Shown(() => void this.sendToolListChanged().catch(() => undefined));

  constructor(
    private readonly era: Era,
    ...of: ConstructorParameters<typeof Server>
  ) {
    super(...of);
  }

  toolsAre(revision: string | null): void {
    this.shown.now(revision);
  }

  override setRequestHandler(...given: readonly unknown[]): void {
    const before = given.slice(0, -1);
    const handler = given.at(-1) as (taken: unknown, ctx: ServerContext) => unknown;
    const reached = (taken: unknown, ctx: ServerContext): unknown => {
      REACHED.add(ctx);
      return handler(taken, ctx);
    };
    (super.setRequestHandler as (...all: unknown[]) => void).call(this, ...before, reached);
  }

  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const wrapped = super._wrapHandler(method, handler);
    return async (request, ctx) => {
      if (this.era === "modern") refuseVersion(ctx.mcpReq.envelope);
      try {
        const answer = await wrapped(request, ctx);
        // What is listed is so since it was made: it is long, and asked for often.
        return method === "tools/list" ? answer : inUnicode(answer);
      } catch (thrown) {
        if (thrown instanceof TaskAnswer) return inUnicode(thrown.answer);
        // The SDK tells neither of the two apart.
        throw REACHED.has(ctx) || thrown instanceof ProtocolError ? thrown : unfitParams(method, thrown);
      }
    };
  }
}

/** One server of the protocol: for a connection, or of 2026-07-28 over HTTP for a request. */
export function relayServer(service: McpService, era: Era): ToldServer {
  const made = new RelayServer(
    era,
    { name: "clio-relay", title: "clio-relay", version: service.version },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true },
        prompts: {},
        completions: {},
        ...(era === "modern" ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
      },
      instructions: INSTRUCTIONS,
    },
  );
  const server: Server = made;
  server.onerror = service.onFault;
  const { shown } = made;
  server.setRequestHandler("tools/list", async ({ params }, ctx) => {
    const listing = await service.listing(ctx.mcpReq.signal);
    try {
      const { tools, ...rest } = pageOf(listing, params?.cursor);
      shown.listed(listing.revision);
      return { tools: tools as never, ...rest, _meta: { [CATALOG_REVISION]: listing.revision } };
    } catch (error) {
      throw protocolError(error);
    }
  });
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    const meant = ctx.mcpReq._meta?.[CATALOG_REVISION];
    const tool = await service
      .tool(params.name, typeof meant === "string" ? meant : shown.bound, ctx.mcpReq.signal)
      .catch((error: unknown) => {
        // Whoever asks for a tool of another list has to know it; a client hears of it as of any change.
        if (isRelayError(error, "mcp_catalog_changed")) shown.now(String(error.data["catalog_revision"]));
        else throw protocolError(error);
        return error;
      });
    if (tool instanceof Error) return asResult(failureAnswer(tool));
    const given = params.arguments ?? {};
    const call = callOf(service, ctx);
    const withTask = era === "modern" && declaresTasks(ctx.mcpReq.envelope);
    try {
      if (withTask && hasSubmit(tool)) {
        const outcome = await submitTool(tool, given, call);
        if (outcome !== null && "submitted" in outcome) throw new TaskAnswer(birth(outcome.submitted));
        if (outcome !== null) return asResult(outcome.refused);
      }
      if (tool.taskOnly === true) throw missingTasks();
      return asResult(await runTool(tool, given, call));
    } catch (thrown) {
      if (thrown instanceof InputNeeded) return inputRequired({ inputRequests: thrown.requests as never });
      throw thrown;
    } finally {
      call.end();
    }
  });
  serveResources(server, service, era);
  servePrompts(server, service);
  if (era === "modern") serveTasks(server, service.tasks);
  return made;
}

const hasSubmit = (tool: Tool): tool is Tool & Required<Pick<Tool, "submit">> => tool.submit !== undefined;

const asResult = (answer: ToolAnswer): CallToolResult => answer as unknown as CallToolResult;

/** What a call is answered with whose job is in the queue (SEP-2663, CreateTaskResult). */
const birth = ({ job }: Submitted): Result => ({ resultType: "task", ...seedOf(job) });

function callOf(service: McpService, ctx: ServerContext): ToolCall & { end(): void } {
  const { profile, clusters, now, files } = service;
  const { _meta: meta, signal } = ctx.mcpReq;
  const token = meta?.progressToken;
  const progress =
    token === undefined
      ? null
      : new CallProgress((told) => {
          // Whoever does not hear of it learns it from the answer.
          ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken: token, ...told } }).catch(() => undefined);
        });
  const end = (): void => progress?.end();
  signal.addEventListener("abort", end, { once: true });
  return {
    profile,
    clusters,
    now,
    files,
    remote: () => service.listing(signal),
    signal,
    responses: ctx.mcpReq.inputResponses ?? null,
    wantsProgress: token !== undefined,
    progress: (step, message) => progress?.tell(step, message),
    end,
  };
}
