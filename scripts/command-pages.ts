import { toJsonSchemaDefs } from "@valibot/to-json-schema";
import { COMMON } from "../src/cli/arguments.ts";
import { COMMANDS, NOUNS } from "../src/cli/commands.ts";
import { PRINTED, type Printed } from "../src/cli/documents/printed.ts";
import { optionRows, usageLine } from "../src/cli/help.ts";
import { RemoteMcpServer } from "../src/config/remote-mcp-server.ts";
import { SETTINGS, type Setting } from "../src/config/settings.ts";
import { Artifact } from "../src/domain/artifact.ts";
import { Attempt, ProcessIdentity } from "../src/domain/attempt.ts";
import { Capacity } from "../src/domain/endpoint.ts";
import { CancellationRequest, Job, JobReceipt, Outcome } from "../src/domain/job.ts";
import { JsonValue, Metadata } from "../src/domain/primitives.ts";
import { Task } from "../src/domain/task.ts";
import { JobSummary, JobWaitResult, WorkerStatus } from "../src/domain/views.ts";
import { HostProbe } from "../src/transport/bootstrap/probe.ts";
import { LedgerEntry } from "../src/transport/ledger.ts";

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

function printedBy(path: string): Printed {
  const printed = PRINTED[path];
  if (printed === undefined) throw new Error(`src/cli/documents/printed.ts does not say what ${path} prints with --json`);
  return printed;
}

const SHAPES = {
  document: (schema: string) => `With \`--json\`: ${schema}.`,
  lines: (schema: string) => `With \`--json\`: ${schema}, one a line.`,
  either: (schema: string) => `With \`--json\`: ${schema}; one a line where it goes on.`,
  nothing: () => "Prints no document.",
} as const;

const printedLine = ({ shape, name }: Printed): string => SHAPES[shape](`[\`${name}\`](cli-schemas.json)`);

/** Named once, however many documents hold them. */
const SHARED = {
  JsonValue,
  Metadata,
  Artifact,
  Attempt,
  CancellationRequest,
  Capacity,
  HostProbe,
  Job,
  JobReceipt,
  JobWaitResult,
  JobSummary,
  LedgerEntry,
  Outcome,
  ProcessIdentity,
  RemoteMcpServer,
  Task,
  WorkerStatus,
};

/** docs/cli-schemas.json: the JSON Schema of everything that a verb prints with `--json`, by its name. Relations between members are left out. */
export function cliSchemas(): string {
  const printed = Object.values(PRINTED).filter(({ shape }) => shape !== "nothing");
  const definitions = { ...SHARED, ...Object.fromEntries(printed.map(({ name, schema }) => [name, schema])) };
  const $defs = toJsonSchemaDefs(definitions, { errorMode: "ignore", typeMode: "output" });
  return `${JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", $defs }, null, 1)}\n`;
}

/** docs/cli.md: what `--help` of every verb says, on one page. */
export async function cliPage(): Promise<string> {
  const parts = [
    `# Commands

Generated from \`src/cli/\`. Standard output is data, standard error everything else. \`--json\` prints the record itself, or one a line where they go on; [cli-schemas.json](cli-schemas.json) has the schema of each.
Tables are for terminals; elsewhere the same comes as lines with tabs. Everything after the first \`--\` is passed on untouched. What goes wrong is said
on standard error: as \`error:\` and \`hint:\`, or with \`--json\` as one line that is the problem document of [http](http.md). Lines that begin with \`notice:\` may come before. Exit codes are in [errors](errors.md),
settings in [settings](settings.md).`,
  ];
  for (const [noun, verbs] of Object.entries(COMMANDS)) {
    const listed = Object.entries(verbs).filter(([, command]) => !command.alias);
    if (listed.length === 0) continue;
    if (noun !== "") parts.push(`## ${noun}\n\n${NOUNS[noun]}.`);
    for (const [name, command] of listed) {
      const { verb } = await command.load();
      const path = `${noun} ${name}`.trim();
      parts.push(`### ${path}`, `${verb.summary}.`);
      if (verb.details !== undefined) parts.push(verb.details);
      const own = optionRows(verb).slice(0, -Object.keys(COMMON).length);
      const options = own.map(([option, doc]) => `| \`${cell(option.trim())}\` | ${cell(doc)} |`);
      const examples = verb.examples.map(([line, what]) => `# ${what}\nclio-relay ${line}`);
      if (options.length > 0) parts.push(`| option | |\n|---|---|\n${options.join("\n")}`);
      parts.push(`\`\`\`sh\n${usageLine(path, verb)}\n\n${examples.join("\n")}\n\`\`\``);
      parts.push(printedLine(printedBy(path)));
    }
  }
  parts.push(
    "## Other names\n\n`endpoint start` is `worker run` (`--role desktop`: `desktop run`), `endpoint status` is `worker status`, `queue cancel` is `job cancel`. `--timeout` and `--timeout-seconds` are one option, in seconds or as `30m`, wherever there is one of them.",
    "## Options of every command\n\n`--json`, `--yes` (`-y`), `--no-input`, `--help` (`-h`).",
  );
  return `${parts.join("\n\n")}\n`;
}

/** docs/settings.md: every setting, its variable and its default. */
export function settingsPage(): string {
  const rows = Object.entries<Setting<unknown>>(SETTINGS).map(
    ([name, one]) =>
      `| \`${name}\` | \`${one.variable}\` | ${one.default === null ? "" : `\`${one.default}\``} | ${cell(one.doc)} | ${cell(one.form)} |`,
  );
  return `# Settings

Generated from \`src/config/settings.ts\`. The environment wins over \`config.toml\` in the configuration directory, which wins over the default. A value that is not
of its form, and a key that is none of these, is refused when it is read.

| config.toml | variable | default | what | form |
|---|---|---|---|---|
${rows.join("\n")}

## Where things lie

| variable | what |
|---|---|
| \`CLIO_RELAY_HOME\` | an absolute path: puts everything below that directory: \`config\`, \`core\`, \`spool\`, \`cache\`, \`run\`, \`state\`, \`log\` |
| \`CLIO_RELAY_CORE_DIR\`, \`CLIO_RELAY_SPOOL_DIR\` | move the state and the output of the clusters of this machine |
| \`CLIO_RELAY_CLUSTER_REGISTRY\` | another place for \`clusters.json\` |
| \`CLIO_RELAY_REMOTE_MCP_CACHE\` | another place for \`remote-mcp-cache.json\`, which has what [MCP servers on clusters](federation.md) were found to have |
| \`CLIO_RELAY_SSH_CONFIG\` | an ssh configuration in place of the user's and the system's, for connections that the command asks for; \`none\` for none |

State, output and registry are moved to absolute paths; a relative one is refused. That makes no other installation: \`CLIO_RELAY_HOME\` does, with a daemon and workers of its own. A command that names
another registry than the daemon's, or other directories than those of the worker that runs, is refused (\`configuration_error\`), and the error names both.

Without them: \`~/.config/clio-relay\`, \`~/.local/share/clio-relay/core\` and \`spool\`, \`~/.cache/clio-relay\`, \`~/.local/state/clio-relay\` and \`log\` in it. Sockets are never in a home directory that other
machines share: they lie in \`run\` where its path is short enough and its file system local, else in \`$XDG_RUNTIME_DIR/clio-relay\` or \`/tmp/clio-relay-UID\`.
`;
}
