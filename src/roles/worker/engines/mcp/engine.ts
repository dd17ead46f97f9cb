import { RelayError } from "../../../../domain/errors.ts";
import type { Lane } from "../../../../domain/job.ts";
import { MCP_LIMITS, mcpExecution } from "../../../../domain/mcp-call.ts";
import type { McpCallSpec } from "../../../../domain/specs.ts";
import { canonicalJson, sha256Hex } from "../../../../lib/digest.ts";
import { jsonExcess } from "../../../../lib/text/json-excess.ts";
import type { Engine, EngineAround, EngineAttempt, SubmissionOf } from "../engine.ts";
import { McpAttempt, type PlannedCall } from "./attempt.ts";
import type { ToolEvidence } from "./evidence.ts";
import type { WarmServers } from "./warm-servers.ts";

export interface McpEngineAround {
  readonly evidence: ToolEvidence;
  readonly warm: WarmServers;
  /** The environment that a server may have variables of. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a setup text may make further ones. */
  readonly hasSetup: boolean;
  /** Program and arguments of the MCP server of JARVIS-CD; null where none is configured. */
  readonly jarvis: readonly string[] | null;
}

/** In place of a program, with no arguments: the MCP server of JARVIS-CD. */
const JARVIS = "jarvis";

/** Levels are bounded with the request's. */
const ARGUMENT_BOUNDS = { depth: Number.MAX_SAFE_INTEGER, values: 100_000 };

/** Calls of MCP servers on the cluster (docs/federation.md). */
export class McpEngine implements Engine<"mcp_call"> {
  readonly kind = "mcp_call";

  constructor(private readonly around: McpEngineAround) {}

  async admit({ spec }: SubmissionOf<"mcp_call">): Promise<Lane> {
    const server = this.#server(spec);
    this.#refuseMissing(spec);
    const excess = jsonExcess(Buffer.from(JSON.stringify(spec.arguments)), ARGUMENT_BOUNDS);
    if (excess !== null) throw refused("arguments", `the arguments: ${excess}`);
    if (timeLimit(spec) > MCP_LIMITS.controlSeconds) return "workload";
    const reads = spec.operation === "tools/list" || (await this.around.evidence.shows(spec, fingerprintOf(server)));
    return reads ? "control" : "workload";
  }

  attempt(around: EngineAround<"mcp_call">): EngineAttempt {
    const planned = (): PlannedCall => {
      const spec = this.#server(around.job.spec);
      return { spec: { ...spec, timeout_seconds: timeLimit(spec) }, fingerprint: fingerprintOf(spec) };
    };
    return new McpAttempt(around, planned, this.around.warm);
  }

  /** The spec with the program that it stands for. @throws RelayError engine_unavailable */
  #server(spec: McpCallSpec): McpCallSpec {
    if (spec.server !== JARVIS || spec.server_args.length > 0) return spec;
    const [server, ...server_args] = this.around.jarvis ?? [];
    if (server !== undefined) return { ...spec, server, server_args };
    throw new RelayError(
      "engine_unavailable",
      "this worker has no MCP server of JARVIS-CD",
      { kind: this.kind, cause: "jarvis_mcp_unconfigured" },
      "set CLIO_RELAY_JARVIS_MCP_COMMAND where the worker runs, and start it again",
    );
  }

  #refuseMissing({ env_from }: McpCallSpec): void {
    if (this.around.hasSetup) return;
    const missing = Object.values(env_from).find((source) => this.around.environment[source] === undefined);
    if (missing !== undefined) throw refused("environment", `the worker has no variable ${missing}`);
  }
}

const timeLimit = ({ operation, timeout_seconds }: McpCallSpec): number =>
  timeout_seconds ?? (operation === "tools/list" ? MCP_LIMITS.listSeconds : MCP_LIMITS.callSeconds);

const fingerprintOf = (spec: McpCallSpec): string => sha256Hex(canonicalJson(mcpExecution(spec)));

const refused = (cause: string, message: string): RelayError => new RelayError("mcp_admission_refused", message, { cause });
