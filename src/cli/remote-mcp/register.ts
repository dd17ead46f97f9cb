import * as v from "valibot";
import { clusterNotFound } from "../../config/clusters.ts";
import { readRemoteMcpCache } from "../../config/remote-mcp-cache.ts";
import {
  CALL_TIMEOUT_MAX_SECONDS,
  CALL_TIMEOUT_SECONDS,
  executionFingerprint,
  RemoteMcpServer,
  SCHEMA_CACHE_TTL_SECONDS,
} from "../../config/remote-mcp-server.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { canonicalJson } from "../../lib/digest.ts";
import { printJson } from "../print/table.ts";
import { assignment, byteCount, oneOf, text, whole } from "../values.ts";
import { defineVerb, type FlagValues, list, option, optionOr, required, toggle } from "../verb.ts";
import { noteHidden } from "./notices.ts";
import { REGISTRATION, refreshCommand, withServers } from "./options.ts";

const FLAGS = {
  ...REGISTRATION,
  command: required(text("PROGRAM"), "Its program, as the cluster finds it; no shell reads it"),
  arg: list(text("ARGUMENT"), "An argument of it"),
  "env-from": list(assignment("CHILD=SOURCE"), "A variable of it, and the worker's whose value it gets; names only"),
  "allow-tool": list(text("TOOL"), "A tool that may be used, by the server's name for it; * for all. Without any, none may"),
  profile: list(oneOf("user", "admin", "operator"), "Who is shown them: user, admin (default; operator is another name of it)"),
  namespace: option(text("NAMESPACE"), "What stands before the tools' names; --name unless given"),
  contract: option(text("CONTRACT"), "What it is held to be a server of"),
  "schema-cache-ttl-seconds": optionOr(whole(1, 366 * 86_400), SCHEMA_CACHE_TTL_SECONDS, "How long its tools are shown after a refresh"),
  "call-timeout-seconds": optionOr(whole(1, CALL_TIMEOUT_MAX_SECONDS), CALL_TIMEOUT_SECONDS, "How long one call may take"),
  reuse: toggle("Keep it running for the calls that follow"),
  "reuse-idle-seconds": option(whole(1, 86_400), "With --reuse: for how long after a call; 300 unless given"),
  "reuse-max-calls": option(whole(1, 1_000_000), "With --reuse: for how many calls; 1000 unless given"),
  "reuse-max-memory": option(byteCount, "With --reuse: up to how much memory; 1GiB unless given"),
  enabled: toggle("Its tools are shown (default)"),
  disabled: toggle("They are not, for now"),
  replace: toggle("Take the place of another registration of that name"),
} as const;

type Given = FlagValues<typeof FLAGS>;

export const verb = defineVerb({
  summary: "Offer agents the tools of an MCP server on a cluster",
  details:
    "Writes it down and asks nobody: remote-mcp refresh does. A change of command, arguments or variables hides its tools until the next refresh; everything else counts when tools are listed next. " +
    "The profile user is shown tools only of servers whose program cannot become another one unnoticed (docs/federation.md).",
  positionals: {},
  flags: FLAGS,
  examples: [
    [
      "remote-mcp register --cluster c --name science --command science-mcp --allow-tool inspect_dataset --profile user",
      "one tool, for everybody's agents",
    ],
    [
      "remote-mcp register --cluster c --name fs --command /opt/mcp/fs --arg /data --allow-tool '*' --reuse",
      "all of its tools, for operators; kept running",
    ],
  ],
  async run({ flags, io, json, relay }) {
    const registration = registrationOf(flags);
    const { cluster, name } = flags;
    await relay.clusterEntry(cluster);
    const { after } = await relay.desktop.changeCluster(cluster, (entry) => {
      if (entry === null) throw clusterNotFound(cluster, []);
      const servers = entry.remote_mcp_servers ?? {};
      const there = Object.hasOwn(servers, name) ? servers[name]! : null;
      if (there !== null && !flags.replace && canonicalJson(there) !== canonicalJson(registration)) {
        throw new RelayError(
          "state_conflict",
          `another MCP server is registered as ${name} on ${cluster}`,
          { cluster, server: name },
          "--replace takes its place; remote-mcp list shows it",
        );
      }
      return withServers(entry, { ...servers, [name]: registration });
    });
    const execution_fingerprint = executionFingerprint(registration);
    const found = readRemoteMcpCache(relay.paths, io.env).entries.find((one) => one.cluster === cluster && one.server === name);
    const cache_reusable = found?.execution_fingerprint === execution_fingerprint;
    const kept = after.remote_mcp_servers![name]!;
    if (json) {
      const reload_semantics = cache_reusable ? "next_list" : "refresh";
      await printJson(io.stdout, {
        cluster,
        server_name: name,
        registration: kept,
        execution_fingerprint,
        cache_reusable,
        reload_semantics,
      });
      return EXIT.ok;
    }
    await io.stdout.write(`registered ${name} on ${cluster}\n`);
    if (kept.allow_tools.length === 0) await io.stderr.write("notice: none of its tools is allowed yet: --replace --allow-tool NAME\n");
    else if (!cache_reusable) await io.stderr.write(`notice: its tools are shown after ${refreshCommand(cluster, name)}\n`);
    else await noteHidden(io, absent(kept.allow_tools, found!.tools), refreshCommand(cluster, name));
    return EXIT.ok;
  },
});

/** What is said of allowed tools that the server did not have when it was asked. */
const absent = (allowed: readonly string[], there: readonly { readonly name: string }[]): string[] =>
  allowed.filter((tool) => tool !== "*" && there.every(({ name }) => name !== tool)).map((tool) => `${tool}: the server had no such tool`);

/** @throws RelayError usage */
function registrationOf(flags: Given): RemoteMcpServer {
  if (flags.enabled && flags.disabled) throw new RelayError("usage", "--enabled and --disabled exclude each other");
  const limits = (["reuse-idle-seconds", "reuse-max-calls", "reuse-max-memory"] as const).filter((name) => flags[name] !== undefined);
  if (!flags.reuse && limits.length > 0) throw new RelayError("usage", `--${limits[0]} needs --reuse`);
  const sources = new Set(flags["env-from"].map(([child]) => child));
  if (sources.size < flags["env-from"].length) throw new RelayError("usage", "--env-from names a variable twice");
  const read = v.safeParse(RemoteMcpServer, {
    command: flags.command,
    args: flags.arg,
    env_from: Object.fromEntries(flags["env-from"]),
    namespace: flags.namespace ?? null,
    contract: flags.contract ?? null,
    allow_tools: [...new Set(flags["allow-tool"])],
    profiles: profilesOf(flags.profile),
    schema_cache_ttl_seconds: flags["schema-cache-ttl-seconds"],
    call_timeout_seconds: flags["call-timeout-seconds"],
    enabled: !flags.disabled,
    reuse: flags.reuse ? reuseOf(flags) : null,
  });
  if (read.success) return read.output;
  const [issue] = read.issues;
  throw new RelayError("usage", `the registration does not fit: ${v.getDotPath(issue) ?? "the whole"}: ${issue.message}`);
}

const profilesOf = (given: Given["profile"]): string[] =>
  given.length === 0 ? ["admin"] : [...new Set(given.map((profile) => (profile === "operator" ? "admin" : profile)))].sort();

const reuseOf = (flags: Given) => ({
  ...(flags["reuse-idle-seconds"] === undefined ? {} : { idle_seconds: flags["reuse-idle-seconds"] }),
  ...(flags["reuse-max-calls"] === undefined ? {} : { max_calls: flags["reuse-max-calls"] }),
  ...(flags["reuse-max-memory"] === undefined ? {} : { max_memory_bytes: flags["reuse-max-memory"] }),
});
