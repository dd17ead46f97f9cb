import { isPublicVariable } from "../../config/public-variables.ts";

/** What codex lets a server have, as far as it may be an argument: whoever may list processes reads those. */
const MEMBERS: ReadonlySet<string> = new Set([
  ...["command", "args", "cwd", "env", "env_vars", "url", "bearer_token_env_var"],
  ...["enabled", "enabled_tools", "disabled_tools", "startup_timeout_sec", "tool_timeout_sec"],
]);
/** What a program within a job finds its job by; codex hands on few variables. */
const OF_THE_JOB = ["CLIO_RELAY_JOB_ID", "CLIO_RELAY_CLUSTER", "CLIO_RELAY_ATTEMPT", "CLIO_RELAY_EVENTS"];
const SERVERS_MAX = 64;

type Table = Readonly<Record<string, unknown>>;

/**
 * The servers of an MCP configuration (TOML with tables `mcp_servers.NAME`) as options of `codex exec`, which takes no such file: `-c KEY=VALUE`, the value
 * in TOML.
 *
 * @throws Error that says what of it cannot be handed over
 */
export function codexServers(text: string): string[] {
  const { mcp_servers: servers = {}, ...others } = parsed(text);
  const [other] = Object.keys(others);
  if (other !== undefined) throw new Error(`it has ${JSON.stringify(other.slice(0, 100))}; only mcp_servers is handed over`);
  if (!isTable(servers) || Object.keys(servers).length > SERVERS_MAX)
    throw new Error(`mcp_servers has to be tables, and at most ${SERVERS_MAX}`);
  return Object.entries(servers).flatMap(([name, server]) => ofServer(name, server));
}

function parsed(text: string): Table {
  try {
    return Bun.TOML.parse(text) as Table;
  } catch {
    // What the parser says may repeat some of the text.
    throw new Error("it is no TOML");
  }
}

function ofServer(name: string, server: unknown): string[] {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw new Error("a server's name has to be letters, digits, _ and -, at most 64");
  if (!isTable(server)) throw new Error(`mcp_servers.${name} is no table`);
  const { env = {}, env_vars = [], ...members } = server;
  const unknown = Object.keys(server).find((member) => !MEMBERS.has(member));
  if (unknown !== undefined)
    throw new Error(`${JSON.stringify(unknown.slice(0, 100))} of ${name} is not handed over: others could read it`);
  if (!isTable(env)) throw new Error(`env of ${name} is no table`);
  const secret = Object.entries(env).find(([variable, value]) => typeof value !== "string" || !isPublicVariable(variable, value));
  if (secret !== undefined)
    throw new Error(
      `${JSON.stringify(secret[0].slice(0, 100))} in env of ${name} is not handed over: others could read it; env_vars names a variable without its value`,
    );
  if (!Array.isArray(env_vars)) throw new Error(`env_vars of ${name} is no array`);
  const handedOn = members["command"] === undefined ? [] : [["env_vars", [...new Set([...env_vars, ...OF_THE_JOB])]] as const];
  const variables = Object.entries(env).map(([variable, value]) => [`env.${variable}`, value] as const);
  return [...Object.entries(members), ...handedOn, ...variables].flatMap(([key, value]) => [
    "-c",
    `mcp_servers.${name}.${key}=${toml(value, name)}`,
  ]);
}

const isTable = (value: unknown): value is Table => value !== null && typeof value === "object" && !Array.isArray(value);

/** A JSON string is a basic string of TOML 1.0, but for DEL, which has to be escaped there. */
function toml(value: unknown, name: string): string {
  if (typeof value === "string" && !value.includes("\0")) return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return String(value);
  if (Array.isArray(value)) return `[${value.map((one) => toml(one, name)).join(", ")}]`;
  throw new Error(`a value of ${name} is neither text, number, boolean nor an array of these`);
}
