import type { Environment } from "../../config/environment.ts";
import { isPublicVariable } from "../../config/public-variables.ts";
import { EXIT } from "../../domain/errors.ts";
import type { CliIo } from "../io.ts";
import { targetFile } from "../job/target-file.ts";
import { OVERWRITE, writeMade } from "../overwrite.ts";
import { printJson } from "../print/table.ts";
import { oneOf, text } from "../values.ts";
import { defineVerb, option, optionOr } from "../verb.ts";

/** Programs that start MCP servers, by what their configuration looks like. */
const CLIENTS = ["codex", "claude", "cursor", "vscode", "gemini", "windsurf", "opencode"] as const;
type Client = (typeof CLIENTS)[number];

/** How a client starts the server. */
interface Started {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export const verb = defineVerb({
  summary: "Print what an agent's program needs to start mcp-server",
  details:
    "TOML for codex, JSON for the others. Such programs hand on few variables of their own, so that those of clio-relay which are set here, and are no secrets, are written down with it.",
  positionals: {},
  flags: {
    client: optionOr(oneOf(...CLIENTS), "codex", "Whose configuration it is"),
    profile: optionOr(oneOf("user", "admin"), "user", "Which tools there are"),
    output: option(text("FILE"), "Write it into this file", "o"),
    ...OVERWRITE,
  },
  examples: [
    ["agent render-mcp-config --client claude", "what goes into its list of servers"],
    ["agent render-mcp-config --output clio-relay-agent.config.toml", "a file to hand on"],
  ],
  async run({ flags, io, json }) {
    const client = flags.client as Client;
    const [command = "", ...before] = io.self;
    const args = [...before, "mcp-server", ...(flags.profile === "user" ? [] : ["--profile", flags.profile])];
    const rendered = configurationOf(client, { command, args, env: ownVariables(io.env) });
    const file = targetOf(io, flags);
    if (file !== null)
      writeMade(new Map([[file, rendered]]), { overwrite: flags.overwrite, where: `-o ${flags.output}`, instead: INSTEAD });
    if (json) await printJson(io.stdout, { client, path: file, text: rendered });
    else await io.stdout.write(file === null ? rendered : `${file}\n`);
    return EXIT.ok;
  },
});

/** A client's file may have other servers, and comments, which only its owner puts together with what is printed. */
const INSTEAD = "without --output it is printed, to be joined to what is there; another --output";

/** Where it is to be written; null: to standard output. @throws RelayError usage, local_file_unusable */
const targetOf = (io: CliIo, { client, output }: { readonly client: string; readonly output: string | undefined }): string | null =>
  output === undefined ? null : targetFile(io, output, `${NAME}.${client === "codex" ? "toml" : "json"}`);

/** Variables that say where this installation is, and which job this is in. What may hold a secret is none of them. */
function ownVariables({ variables }: Pick<Environment, "variables">): Record<string, string> {
  const own = Object.entries(variables).filter(
    (one): one is [string, string] => one[1] !== undefined && one[1] !== "" && isPublicVariable(one[0], one[1]),
  );
  return Object.fromEntries(own.sort(([a], [b]) => (a < b ? -1 : 1)));
}

const NAME = "clio-relay";

export function configurationOf(client: Client, { command, args, env }: Started): string {
  const server = { command, args, ...(Object.keys(env).length === 0 ? {} : { env }) };
  if (client === "codex") return toml(server);
  if (client === "opencode") {
    const environment = Object.keys(env).length === 0 ? {} : { environment: env };
    return jsonText({ mcp: { [NAME]: { type: "local", command: [command, ...args], enabled: true, ...environment } } });
  }
  const list = client === "vscode" ? { servers: { [NAME]: { type: "stdio", ...server } } } : { mcpServers: { [NAME]: server } };
  return jsonText(list);
}

const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** A JSON string is a basic string of TOML 1.0, but for DEL, which has to be escaped there. */
const quoted = (value: string): string => JSON.stringify(value).replaceAll("\u007f", "\\u007f");

function toml({ command, args, env = {} }: Partial<Started> & Omit<Started, "env">): string {
  const variables = Object.entries(env).map(([name, value]) => `${name} = ${quoted(value)}`);
  return [
    `[mcp_servers.${NAME}]`,
    `command = ${quoted(command)}`,
    `args = [${args.map(quoted).join(", ")}]`,
    ...(variables.length === 0 ? [] : ["", `[mcp_servers.${NAME}.env]`, ...variables]),
    "",
  ].join("\n");
}
