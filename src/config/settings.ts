import path from "node:path";
import { AGENT_ADAPTERS, agentArguments } from "../domain/agent.ts";
import { RelayError } from "../domain/errors.ts";
import { isId } from "../domain/id.ts";
import { LIMITS } from "../domain/limits.ts";
import { nearest } from "../lib/text/nearest.ts";
import { parseBytes, parseDuration, parseWhole } from "../lib/text/quantity.ts";
import { type Environment, variable } from "./environment.ts";

/** One setting: its default and how to read it. The name in `SETTINGS` is its name in config.toml. */
export interface Setting<T> {
  readonly variable: string;
  readonly default: T;
  /** One sentence for the generated documentation. */
  readonly doc: string;
  /** What a value looks like, for the same and for errors. */
  readonly form: string;
  /** null: the text is not such a value. */
  readonly parse: (text: string) => T | null;
  /** Whether a value may hold a password, so that one that is refused is not repeated. */
  readonly mayBeSecret?: true;
}

type Reader<T> = Pick<Setting<T>, "form" | "parse" | "mayBeSecret">;

const within =
  (parse: (text: string) => number | null, least: number, most: number) =>
  (text: string): number | null => {
    const value = parse(text);
    return value !== null && value >= least && value <= most ? value : null;
  };

const bytes = (least: number): Reader<number> => ({
  form: `a number of bytes, or one with KiB, MiB, GiB or TiB, at least ${least}`,
  parse: within(parseBytes, least, Number.MAX_SAFE_INTEGER),
});
const whole = (least: number, most: number): Reader<number> => ({
  form: `a whole number from ${least} to ${most}`,
  parse: within(parseWhole, least, most),
});
const seconds = (most: number): Reader<number> => ({
  form: `a duration such as 10s or 2m, at most ${most} seconds`,
  parse: within(parseDuration, 0, most),
});
const oneOf = <const T extends string>(...words: readonly T[]): Reader<T> => ({
  form: `one of ${words.join(", ")}`,
  parse: (text) => words.find((word) => word === text) ?? null,
});
const absolutePath: Reader<string | null> = {
  form: "an absolute path",
  parse: (text) => (path.isAbsolute(text) ? text : null),
};
const program: Reader<string> = {
  form: "the absolute path of a program, or its name on the PATH",
  parse: (text) => (path.isAbsolute(text) || /^[\w.+-]+$/.test(text) ? text : null),
};
const argumentList: Reader<string> = {
  form: "a JSON array of texts, and of arrays of texts",
  parse: (text) => (agentArguments(text) === null ? null : text),
};
const commandWords: Reader<string | null> = {
  form: "a JSON array of texts, the first of which is a program",
  parse: (text) => (wordsOf(text) === null ? null : text),
};
const proxy: Reader<string | null> = {
  form: "http://[USER:PASSWORD@]HOST:PORT, or https://…",
  parse: (text) => (/^https?:\/\/[^\s/]+\/?$/i.test(text) ? text : null),
  mayBeSecret: true,
};
const clusterName: Reader<string | null> = {
  form: "the name of a cluster",
  parse: (text) => (isId(text) ? text : null),
};

/** A command from a JSON array of texts; null for what is none. */
export function wordsOf(text: string): readonly [string, ...string[]] | null {
  const words = agentArguments(text);
  const fits = words !== null && words.length > 0 && words[0] !== "" && words.every((word) => typeof word === "string");
  return fits ? (words as [string, ...string[]]) : null;
}

const setting = <T>(variableName: string, reader: Reader<T>, fallback: T, doc: string): Setting<T> => ({
  variable: variableName,
  default: fallback,
  doc,
  ...reader,
});

/** Every setting. Sources, first wins: environment, config.toml, default. Options of a verb that win over one are read by the verb. */
export const SETTINGS = {
  default_cluster: setting("CLIO_RELAY_CLUSTER", clusterName, null, "The cluster that commands mean when they name none."),
  local_listen: setting(
    "CLIO_RELAY_LOCAL_LISTEN",
    oneOf("auto", "unix", "tcp"),
    "auto",
    "Where the desktop daemon listens: a Unix socket, or a loopback port with a token. auto is unix where there are Unix sockets.",
  ),
  log_stream_max_bytes: setting(
    "CLIO_RELAY_LOG_STREAM_MAX_BYTES",
    bytes(0),
    LIMITS.logStreamBytes,
    "Bytes that are kept of one output stream of one job.",
  ),
  log_job_max_bytes: setting(
    "CLIO_RELAY_LOG_JOB_MAX_BYTES",
    bytes(0),
    LIMITS.logJobBytes,
    "Bytes that are kept of all output streams of one job together.",
  ),
  active_jobs_max: setting(
    "CLIO_RELAY_ACTIVE_JOBS_MAX",
    whole(1, 10_000_000),
    LIMITS.activeJobs,
    "Jobs that may be queued or running at a time; more are refused.",
  ),
  scheduler_jobs_max: setting(
    "CLIO_RELAY_SCHEDULER_JOBS_MAX",
    whole(1, 100_000),
    LIMITS.schedulerJobs,
    "Jobs that a worker has in allocations of its scheduler at a time, waiting for them included; more wait in the queue.",
  ),
  shared_spool_dir: setting(
    "CLIO_RELAY_SHARED_SPOOL_DIR",
    absolutePath,
    null,
    "A directory that compute nodes see by the same name; attempts that run in an allocation of a scheduler lie below it, else in the spool.",
  ),
  artifact_store_max_bytes: setting(
    "CLIO_RELAY_ARTIFACT_STORE_MAX_BYTES",
    bytes(0),
    LIMITS.artifactStoreBytes,
    "Outputs up to this size are copied into the spool; larger ones are referenced where they lie.",
  ),
  input_workspace_root: setting(
    "CLIO_RELAY_INPUT_WORKSPACE_ROOT",
    absolutePath,
    null,
    "Inputs of jobs lie below this directory; below the current one where it is not set.",
  ),
  input_file_max_bytes: setting(
    "CLIO_RELAY_INPUT_FILE_MAX_BYTES",
    bytes(0),
    LIMITS.inputFileBytes,
    "Bytes of one input, unless a submission says otherwise (`--max-input-bytes`). Of a worker: of one that comes in a single request, at most 64 MiB.",
  ),
  input_total_max_bytes: setting(
    "CLIO_RELAY_INPUT_TOTAL_MAX_BYTES",
    bytes(0),
    LIMITS.inputTotalBytes,
    "Bytes of all inputs of one submission, unless it says otherwise.",
  ),
  input_file_max_count: setting(
    "CLIO_RELAY_INPUT_FILE_MAX_COUNT",
    whole(0, LIMITS.inputFilesMax),
    LIMITS.inputFiles,
    "Inputs of one submission.",
  ),
  min_free_bytes: setting(
    "CLIO_RELAY_MIN_FREE_BYTES",
    bytes(0),
    LIMITS.minFreeBytes,
    "Submissions are refused when less than this is free where state or spool lie.",
  ),
  cancel_grace_seconds: setting(
    "CLIO_RELAY_CANCEL_GRACE_SECONDS",
    seconds(3_600),
    LIMITS.cancelGraceSeconds,
    "Time between TERM and KILL when a job is canceled or runs out of time.",
  ),
  jarvis_bin: setting("CLIO_RELAY_JARVIS_BIN", program, "jarvis", "The program of JARVIS-CD that a worker runs pipelines with."),
  jarvis_mcp_command: setting(
    "CLIO_RELAY_JARVIS_MCP_COMMAND",
    commandWords,
    null,
    "Program and arguments of the MCP server of JARVIS-CD, which calls of `jarvis` mean; none where it is not set (docs/federation.md).",
  ),
  agent_bin: setting(
    "CLIO_RELAY_AGENT_BIN",
    program,
    null,
    "The program of the agent that a worker runs prompts with; none where it is not set.",
  ),
  agent_adapter: setting(
    "CLIO_RELAY_AGENT_ADAPTER",
    oneOf(...AGENT_ADAPTERS),
    "exec",
    "How that agent is called, and what its output means (docs/agents.md).",
  ),
  agent_args: setting("CLIO_RELAY_AGENT_ARGS", argumentList, "[]", "Its arguments, with placeholders (docs/agents.md)."),
  outbound_proxy: setting(
    "CLIO_RELAY_OUTBOUND_PROXY",
    proxy,
    null,
    "The proxy of ways out to relay-hosts and frps, in place of HTTPS_PROXY, HTTP_PROXY and ALL_PROXY: a service's environment has none of them. NO_PROXY counts.",
  ),
  ca_file: setting(
    "CLIO_RELAY_CA_FILE",
    absolutePath,
    null,
    "A file of certification authorities in PEM that are trusted on the way out, besides the system's and those of SSL_CERT_FILE and NODE_EXTRA_CA_CERTS.",
  ),
  spare_shims: setting("CLIO_RELAY_SPARE_SHIMS", whole(0, 64), 1, "Shims that wait, already started, for the next job."),
  api_connections: setting(
    "CLIO_RELAY_API_CONNECTIONS",
    whole(16, 1_000_000),
    LIMITS.apiConnections,
    "Connections with the token that the desktop holds on TCP at a time; each takes a descriptor, and three while it is asked something.",
  ),
  relay_host_connections: setting(
    "CLIO_RELAY_HOST_CONNECTIONS",
    whole(16, 1_000_000),
    LIMITS.relayHostConnections,
    "Connections that a relay-host holds at a time.",
  ),
  relay_host_connections_per_address: setting(
    "CLIO_RELAY_HOST_CONNECTIONS_PER_ADDRESS",
    whole(1, 1_000_000),
    LIMITS.relayHostConnectionsPerAddress,
    "Of these, from one address.",
  ),
  relay_host_openings_per_address: setting(
    "CLIO_RELAY_HOST_OPENINGS_PER_ADDRESS",
    whole(1, 1_000_000),
    LIMITS.relayHostOpeningsPerAddress,
    "How often an address may come to a relay-host in a minute; who is refused counts five times.",
  ),
  relay_host_openings_per_key: setting(
    "CLIO_RELAY_HOST_OPENINGS_PER_KEY",
    whole(1, 1_000_000),
    LIMITS.relayHostOpeningsPerKey,
    "How often one worker or desktop may come to a relay-host in a minute.",
  ),
  relay_host_workers_per_token: setting(
    "CLIO_RELAY_HOST_WORKERS_PER_TOKEN",
    whole(1, 1_000_000),
    LIMITS.relayHostWorkersPerToken,
    "Workers that may be registered at a relay-host with one token.",
  ),
  relay_host_workers_per_address: setting(
    "CLIO_RELAY_HOST_WORKERS_PER_ADDRESS",
    whole(1, 1_000_000),
    LIMITS.relayHostWorkersPerAddress,
    "Workers that may be registered at a relay-host from one address.",
  ),
  relay_host_joins_per_token: setting(
    "CLIO_RELAY_HOST_JOINS_PER_TOKEN",
    whole(1, 1_000_000),
    LIMITS.relayHostJoinsPerToken,
    "Desktops that may wait or be joined at a relay-host with one token.",
  ),
  relay_host_joins_per_address: setting(
    "CLIO_RELAY_HOST_JOINS_PER_ADDRESS",
    whole(1, 1_000_000),
    LIMITS.relayHostJoinsPerAddress,
    "Of these, from one address.",
  ),
  relay_host_joins_per_room: setting(
    "CLIO_RELAY_HOST_JOINS_PER_ROOM",
    whole(1, 1_000_000),
    LIMITS.relayHostJoinsPerRoom,
    "Of these, for one worker.",
  ),
  relay_host_joins_per_key: setting(
    "CLIO_RELAY_HOST_JOINS_PER_KEY",
    whole(1, 1_000_000),
    LIMITS.relayHostJoinsPerKey,
    "Of these, of one desktop.",
  ),
} as const satisfies Record<string, Setting<never> | Setting<number> | Setting<string> | Setting<string | null>>;

type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [K in SettingName]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never };

/** Values of config.toml, by setting. */
export type FileValues = Readonly<Record<string, unknown>>;

/**
 * Bring the sources together. `file` is what readSettingsFile gives.
 *
 * @throws RelayError configuration_error that names the variable or key and its value
 */
export function loadSettings(env: Environment, file: FileValues = {}): Settings {
  const unknown = Object.keys(file).find((key) => !Object.hasOwn(SETTINGS, key));
  if (unknown !== undefined) {
    const meant = nearest(unknown, Object.keys(SETTINGS));
    throw new RelayError(
      "configuration_error",
      `config.toml: there is no setting ${unknown}`,
      { setting: unknown },
      meant === null ? `settings: ${Object.keys(SETTINGS).join(", ")}` : `did you mean ${meant}?`,
    );
  }
  const read = <T>(name: string, one: Setting<T>): T => {
    const given = variable(env, one.variable);
    const text = given ?? textOf(file[name]);
    if (text === undefined) return one.default;
    const value = one.parse(text);
    if (value !== null) return value;
    const where = given === undefined ? `config.toml: ${name}` : one.variable;
    const shown = one.mayBeSecret ? "" : ` is ${JSON.stringify(text.slice(0, 200))}, but`;
    throw new RelayError("configuration_error", `${where}${shown} must be ${one.form}`, { setting: name });
  };
  return Object.fromEntries(
    Object.entries(SETTINGS).map(([name, one]) => [name, read(name, one as Setting<unknown>)]),
  ) as unknown as Settings;
}

/** A value of the file as an environment variable would have it; what has no such form is refused by the setting. */
function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" || typeof value === "number" ? String(value) : JSON.stringify(value);
}
