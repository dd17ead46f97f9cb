import * as v from "valibot";
import { inputNameProblem, inputVariable } from "./input-name.ts";
import { LIMITS } from "./limits.ts";
import { ControlQueryEvidence, MCP_LIMITS, McpReuse } from "./mcp-call.ts";
import {
  ByteCount,
  Count,
  Finite,
  Id,
  type JsonObject,
  JsonValue,
  jsonBytes,
  Metadata,
  OsString,
  recordOf,
  Sha256,
  text,
} from "./primitives.ts";
import { SchedulerRequest } from "./scheduler.ts";

const PATH_MAX = 4_096;
const byteLength = (s: string): number => new TextEncoder().encode(s).length;

/** POSIX environment name. Names that hold relay credentials cannot be handed to a job. */
const EnvName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, "must be an environment variable name"),
  v.check((name) => !/^CLIO_RELAY_(.*_)?(TOKEN|SECRET)$/.test(name), "names a relay credential"),
);

const Env = v.pipe(
  recordOf(EnvName, OsString(128 * 1024)),
  v.check((env) => Object.keys(env).length <= LIMITS.envEntries, `at most ${LIMITS.envEntries} variables`),
);

const AbsolutePath = v.pipe(OsString(PATH_MAX), v.startsWith("/", "must be an absolute path on the cluster"));

const TimeoutSeconds = v.pipe(Finite, v.gtValue(0), v.maxValue(366 * 86_400));

/** Path pattern below the job's working directory: `*`, `?`, `[…]`, `{a,b}` and `**`; never absolute, no `..`. */
const OutputPattern = v.pipe(
  OsString(PATH_MAX),
  v.minLength(1),
  v.check((p) => !p.startsWith("/") && !p.split("/").includes(".."), "must stay below the working directory"),
);

const Inputs = v.pipe(
  recordOf(v.string(), Id),
  v.check((inputs) => Object.keys(inputs).length <= LIMITS.inputFilesMax, `at most ${LIMITS.inputFilesMax} inputs`),
  v.check(
    (inputs) => inputNameProblem(Object.keys(inputs)) === null,
    (issue) => inputNameProblem(Object.keys(issue.input as object)) ?? "",
  ),
);

/** A program with its arguments, or a script; runs under the shim, on the worker's host or in an allocation of its scheduler. Immutable. */
export const CommandSpec = v.pipe(
  v.strictObject({
    /** Program and arguments, passed to exec without a shell. Exactly one of argv and script. */
    argv: v.optional(
      v.pipe(
        v.array(OsString(LIMITS.argvBytes)),
        v.minLength(1),
        v.maxLength(LIMITS.argvItems),
        v.check((argv) => argv[0] !== "", "the program name is empty"),
        v.check(
          (argv) => argv.reduce((sum, arg) => sum + byteLength(arg) + 1, 0) <= LIMITS.argvBytes,
          `all arguments together take at most ${LIMITS.argvBytes} bytes`,
        ),
      ),
    ),
    /** Script text. Its `#!` line names the interpreter; without one it is /bin/sh. */
    script: v.optional(
      v.pipe(
        OsString(LIMITS.scriptBytes),
        v.minLength(1),
        v.check((s) => byteLength(s) <= LIMITS.scriptBytes, `at most ${LIMITS.scriptBytes} bytes`),
      ),
    ),
    /** Working directory; null is the worker user's home. */
    workdir: v.optional(v.nullable(AbsolutePath), null),
    /** Added to the allow-listed environment. */
    env: v.optional(Env, {}),
    /** Run through the user's login shell, so that its profile (modules, PATH) applies. */
    login: v.optional(v.boolean(), false),
    /** Wall-clock seconds from the start of the attempt; null is unlimited. */
    timeout_seconds: v.optional(v.nullable(TimeoutSeconds), null),
    /** Files to keep as artifacts when the command ends. A pattern that matches nothing fails the job. */
    outputs: v.optional(v.pipe(v.array(OutputPattern), v.maxLength(LIMITS.outputPatterns)), []),
    /** How many further attempts a failed attempt may have. */
    retries: v.optional(v.pipe(Count, v.maxValue(LIMITS.retriesMax)), 0),
    /** Names of its inputs, each with the artifact that it is; the job finds its path in CLIO_RELAY_INPUT_<NAME>. */
    inputs: v.optional(Inputs),
    /** What it asks of a scheduler; without it, it runs on the worker's host. */
    scheduler: v.optional(SchedulerRequest),
  }),
  v.check(
    ({ scheduler, timeout_seconds }) => scheduler === undefined || timeout_seconds === null,
    "timeout_seconds is for jobs on the worker's host; in an allocation it is scheduler.time_limit_seconds",
  ),
  v.check(
    ({ scheduler, script }) => scheduler?.directives !== true || script !== undefined,
    "scheduler.directives is about the lines of a script, and there is none",
  ),
  v.check((spec) => (spec.argv === undefined) !== (spec.script === undefined), "exactly one of argv and script is needed"),
  v.check(
    ({ inputs = {}, env }) => Object.keys(inputs).every((name) => !Object.hasOwn(env, inputVariable(name))),
    "env has a variable that is to hold the path of an input",
  ),
);
export type CommandSpec = v.InferOutput<typeof CommandSpec>;

/** A JARVIS-CD pipeline: its text, or the name or path of one that the cluster has. Immutable. */
export const JarvisSpec = v.pipe(
  v.strictObject({
    pipeline_yaml: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(LIMITS.scriptBytes))),
    pipeline_path: v.optional(AbsolutePath),
    pipeline_name: v.optional(text(256)),
    /** Ask the scheduler for nodes of its own; only of a pipeline that has a scheduler. */
    exclusive: v.optional(v.boolean()),
    /** Settings that are files of the submitter's, as `PACKAGE.SETTING`, each with the artifact that it is. */
    inputs: v.optional(Inputs),
    workdir: v.optional(v.nullable(AbsolutePath), null),
    env: v.optional(Env, {}),
    timeout_seconds: v.optional(v.nullable(TimeoutSeconds), null),
  }),
  v.check(
    (spec) => [spec.pipeline_yaml, spec.pipeline_path, spec.pipeline_name].filter((x) => x !== undefined).length === 1,
    "exactly one of pipeline_yaml, pipeline_path and pipeline_name is needed",
  ),
);
export type JarvisSpec = v.InferOutput<typeof JarvisSpec>;

/** What may be brought along for an agent. */
const AGENT_INPUTS: ReadonlySet<string> = new Set(["prompt", "mcp_config"]);

/** An agent run on the cluster, with a prompt and perhaps an MCP configuration: files that lie there, or inputs (docs/agents.md). Immutable. */
export const RemoteAgentSpec = v.pipe(
  v.strictObject({
    prompt_path: v.optional(AbsolutePath),
    mcp_config_path: v.optional(v.nullable(AbsolutePath), null),
    model: v.optional(v.nullable(v.pipe(OsString(256), v.minLength(1))), null),
    workdir: v.optional(v.nullable(AbsolutePath), null),
    timeout_seconds: v.optional(v.nullable(TimeoutSeconds), null),
    context: v.optional(Metadata, {}),
    /** Artifacts that are brought along, as `prompt` and `mcp_config`. */
    inputs: v.optional(Inputs),
    /** What it asks of a scheduler; without it, it runs on the worker's host. */
    scheduler: v.optional(SchedulerRequest),
  }),
  v.check(
    ({ scheduler, timeout_seconds }) => scheduler === undefined || timeout_seconds === null,
    "timeout_seconds is for agents on the worker's host; in an allocation it is scheduler.time_limit_seconds",
  ),
  v.check(({ scheduler }) => scheduler?.directives !== true, "scheduler.directives is about the lines of a script, and an agent has none"),
  v.check(({ inputs = {} }) => Object.keys(inputs).every((name) => AGENT_INPUTS.has(name)), "inputs of an agent are prompt and mcp_config"),
  v.check(
    ({ prompt_path, inputs = {} }) => (prompt_path === undefined) === Object.hasOwn(inputs, "prompt"),
    "exactly one of prompt_path and the input prompt is needed",
  ),
  v.check(
    ({ mcp_config_path, inputs = {} }) => mcp_config_path === null || !Object.hasOwn(inputs, "mcp_config"),
    "mcp_config_path and the input mcp_config exclude each other",
  ),
);
export type RemoteAgentSpec = v.InferOutput<typeof RemoteAgentSpec>;

/** A variable of a server, and one of the worker's that has its value: nothing of the relay's own on either side. */
const McpVariable = v.pipe(
  EnvName,
  v.check((name) => !name.startsWith("CLIO_RELAY_"), "names a variable of the relay's own"),
);

const McpEnvFrom = v.pipe(
  recordOf(McpVariable, McpVariable),
  v.check((refs) => Object.keys(refs).length <= MCP_LIMITS.envRefs, `at most ${MCP_LIMITS.envRefs} variables`),
);

const McpArguments: v.GenericSchema<JsonObject> = v.pipe(
  recordOf(v.string(), JsonValue),
  v.check((given) => jsonBytes(given) <= MCP_LIMITS.argumentsBytes, `at most ${MCP_LIMITS.argumentsBytes} bytes`),
);

/** One call of, or one tool listing from, an MCP server that runs on the cluster (docs/federation.md). Immutable. */
export const McpCallSpec = v.pipe(
  v.strictObject({
    /** The server's program: an absolute path, or a name on the PATH of jobs. */
    server: v.pipe(OsString(PATH_MAX), v.minLength(1)),
    server_args: v.optional(v.pipe(v.array(OsString(PATH_MAX)), v.maxLength(MCP_LIMITS.serverArgs)), []),
    /** Child variable name -> name of the worker variable whose value it gets. Names only, never values. */
    env_from: v.optional(McpEnvFrom, {}),
    expected_server_artifact_digest: v.optional(v.nullable(Sha256), null),
    expected_registered_contract: v.optional(v.nullable(text(256)), null),
    operation: v.picklist(["tools/call", "tools/list"]),
    tool: v.optional(v.nullable(text(256)), null),
    arguments: v.optional(McpArguments, {}),
    /** Null is 300 for a call, 120 for a list. */
    timeout_seconds: v.optional(v.nullable(TimeoutSeconds), null),
    /** Shows that the tool only reads; then the call may take a slot of the control lane. */
    control_query_evidence: v.optional(v.nullable(ControlQueryEvidence), null),
    /** Keep the server for the calls that follow. */
    reuse: v.optional(v.nullable(McpReuse), null),
  }),
  v.check((spec) => (spec.operation === "tools/call") === (spec.tool !== null), "tool belongs to tools/call, and only there"),
);
export type McpCallSpec = v.InferOutput<typeof McpCallSpec>;

/** The file name of an input, as far as every system takes it. */
export const LogicalName = v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/, "must be a portable file name"));

/** A file that a client hands over as input of later jobs. Immutable. */
export const InputIngestSpec = v.strictObject({
  logical_name: LogicalName,
  size_bytes: ByteCount,
  sha256: Sha256,
});
export type InputIngestSpec = v.InferOutput<typeof InputIngestSpec>;
