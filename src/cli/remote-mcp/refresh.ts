import type { ClusterClient } from "../../api/client.ts";
import { type DiscoveredServer, updateRemoteMcpCache, withEntry } from "../../config/remote-mcp-cache.ts";
import type { RemoteMcpServer } from "../../config/remote-mcp-server.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import type { Job, JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { MCP_LIMITS } from "../../domain/mcp-call.ts";
import type { JobWaitResult } from "../../domain/views.ts";
import type { Discovered } from "../../mcp/federation/discovery.ts";
import { interruptible } from "../follow/interrupt.ts";
import { freshKey, send } from "../job/hand-over.ts";
import { surroundingTrace } from "../job/surrounding-trace.ts";
import { jsonText, oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { patience, text, whole } from "../values.ts";
import { type Call, defineVerb, type FlagValues, ignored, option, optionOr, toggle } from "../verb.ts";
import type { CatalogueView } from "./catalogue-view.ts";
import { noteHidden } from "./notices.ts";
import { REGISTRATION, refreshCommand, registered } from "./options.ts";

/** Characters of a description that whoever is to accept it is shown. */
const DESCRIPTION_SHOWN = 2_000;

/** Options of every verb that asks a server which tools it has. */
export const REFRESH = {
  cluster: REGISTRATION.cluster,
  "timeout-seconds": optionOr(whole(1, 86_400), MCP_LIMITS.listSeconds, "How long the server may take for its list"),
  "wait-timeout-seconds": optionOr(patience, LIMITS.waitDefaultSeconds, "How long to wait for that; the job goes on after it"),
  "poll-seconds": ignored("waiting is by notification"),
  "idempotency-key": option(text("KEY"), "Go on with the refresh that was begun under this key"),
  accept: toggle("Take on what the refresh before has shown to be described otherwise"),
} as const;

/** What is said of each of them. */
export const REFRESH_DETAILS =
  "Starts the server once on the cluster, as a job, and keeps how it describes its tools; a running mcp-server shows them by itself. " +
  "An allowed tool that is described otherwise than when it was accepted is shown here, and hidden from agents until --accept, so that none reads what nobody has looked at.";

export const verb = defineVerb({
  summary: "Ask an MCP server on a cluster which tools it has",
  details: REFRESH_DETAILS,
  positionals: {},
  flags: { ...REGISTRATION, ...REFRESH },
  examples: [
    ["remote-mcp refresh --cluster c --name science", "before its tools are shown, and when they may be others"],
    ["remote-mcp refresh --cluster c --name science --accept", "when the new descriptions have been read"],
  ],
  run: (call) => refresh(call, call.flags.name),
});

/** Ask a server that is registered, and keep what it says. @throws RelayError not_found, observation_timeout, mcp_discovery_failed, state_conflict, payload_too_large */
export async function refresh(call: Refresh, server: string): Promise<number> {
  const { flags, io, relay } = call;
  const name = flags.cluster;
  const entry = await relay.clusterEntry(name);
  const registration = registered(entry, server);
  const cluster = relay.desktop.cluster(name);
  const handing = { cluster, overLink: entry.mode !== "local", trace: await surroundingTrace(io) };
  const key = flags["idempotency-key"] ?? freshKey();
  const { job_id: jobId, existing } = await send(io, handing, listing(name, server, registration, flags["timeout-seconds"], key));
  const again = `${refreshCommand(name, server)} --idempotency-key ${key}`;
  return interruptible(
    io,
    () => `no longer waiting; the job goes on. Take what it finds on with: ${again}`,
    async (signal) => {
      const { updated_at, outcome } = await ended(call, cluster, jobId, again, signal);
      // What was found long ago is no newer for being asked for again; the cluster's clock may be a wrong one.
      const foundAt = existing ? Math.min(io.clock.now(), Date.parse(updated_at)) : io.clock.now();
      await report(call, await keep(call, server, cluster, { jobId, outcome, foundAt }, signal));
      return EXIT.ok;
    },
  );
}

type Refresh = Pick<Call, "io" | "json" | "relay"> & { readonly flags: FlagValues<typeof REFRESH> };

function listing(cluster: string, server: string, registration: RemoteMcpServer, timeout_seconds: number, key: string): JobSubmissionInput {
  const { command, args, env_from, contract } = registration;
  const spec = {
    server: command,
    server_args: args,
    env_from,
    expected_registered_contract: contract,
    operation: "tools/list" as const,
    timeout_seconds,
  };
  return { cluster, kind: "mcp_call", spec, idempotency_key: key, metadata: { title: `tools of ${server}` } };
}

/** @throws RelayError observation_timeout where it has not ended */
async function ended(
  { flags, io }: Refresh,
  cluster: ClusterClient,
  jobId: string,
  again: string,
  signal: AbortSignal,
): Promise<JobWaitResult> {
  const { waitForJob } = await import("../job/wait.ts");
  const job = await waitForJob(cluster, jobId, flags["wait-timeout-seconds"], io, signal);
  if (job.observation.outcome === "terminal") return job;
  throw new RelayError("observation_timeout", `${jobId} has not ended yet; it goes on`, { cluster: cluster.name, job_id: jobId }, again);
}

/** What the job has found, kept as far as it can be shown. */
async function keep(
  { flags, io, relay }: Refresh,
  server: string,
  cluster: ClusterClient,
  { jobId, outcome, foundAt: now }: { readonly jobId: string; readonly outcome: Job["outcome"]; readonly foundAt: number },
  signal: AbortSignal,
): Promise<Discovered> {
  const { callDocument } = await import("../../mcp/federation/call-result.ts");
  const { discovered } = await import("../../mcp/federation/discovery.ts");
  const left = await callDocument(cluster, jobId, signal);
  if (left === null) {
    const why = outcome === null || outcome.message === "" ? "it was not asked" : outcome.message;
    throw new RelayError("mcp_discovery_failed", `the server gave no list of its tools: ${why}`, { cluster: cluster.name, job_id: jobId });
  }
  // What is registered by now counts.
  const entries = await relay.clusters();
  const entry = await relay.clusterEntry(flags.cluster);
  const registration = registered(entry, server);
  const isRegistered = (one: DiscoveredServer): boolean =>
    Object.hasOwn(entries.find(({ name }) => name === one.cluster)?.remote_mcp_servers ?? {}, one.server);
  let result: Discovered | undefined;
  await updateRemoteMcpCache(relay.paths, io.env, (known) => {
    const before = known.find((one) => one.cluster === flags.cluster && one.server === server) ?? null;
    result = discovered({ entry, name: server, registration, jobId, outcome, left, before, accept: flags.accept, now });
    return withEntry(known.filter(isRegistered), result.found);
  });
  return result!;
}

async function report({ io, json, relay }: Refresh, { found, changed }: Discovered): Promise<void> {
  const { catalogueView } = await import("./catalogue-view.ts");
  const entries = await relay.clusters();
  const around = { paths: relay.paths, env: io.env, now: () => io.clock.now() };
  const [user, admin] = (["user", "admin"] as const).map((profile) => ofServer(found, catalogueView(entries, profile, around)));
  const definitions = found.tools.filter(({ name }) => changed.includes(name));
  if (json) {
    await printJson(io.stdout, {
      discovery_job_id: found.provenance.job_id,
      cache_path: relay.paths.remoteMcpCacheFile,
      cache_entry: summaryOf(found),
      changed_tools: changed,
      changed_definitions: definitions,
      profiles: { user, admin },
      mcp_server_restart_required: false,
    });
    return;
  }
  const profiles = entries.find(({ name }) => name === found.cluster)?.remote_mcp_servers?.[found.server]?.profiles ?? [];
  const shown = profiles.includes("user") ? user! : admin!;
  const shownTo = profiles.includes("user") ? [`${user!.virtual_tools.length} are shown`] : [];
  // Who sees none where the endpoint is started as most are has to know why.
  const all = admin!.virtual_tools.length;
  if (shownTo.length === 0 || all !== user!.virtual_tools.length) shownTo.push(`${all} are shown by mcp-server --profile admin`);
  await io.stdout.write(`${found.server} on ${found.cluster} has ${found.tools.length} tools; ${shownTo.join(", ")}\n`);
  for (const { name, description = "" } of definitions) {
    const cut = `${jsonText(description.slice(0, DESCRIPTION_SHOWN))}${description.length > DESCRIPTION_SHOWN ? " …" : ""}`;
    await io.stderr.write(`notice: ${oneLine(name)} is another now: ${cut}; with --json all of it is shown\n`);
  }
  const hidden = shown.issues.map(({ tool, message }) => `${tool === null ? "" : `${tool}: `}${message}`);
  await noteHidden(io, hidden, "--json");
}

/** What a profile is shown of one server. */
const ofServer = ({ cluster, server }: DiscoveredServer, { catalog_revision, tools, issues }: CatalogueView) => ({
  catalog_revision,
  virtual_tools: tools.filter(({ routes }) => routes.some((route) => route.cluster === cluster && route.server_name === server)),
  issues: issues.filter((issue) => issue.cluster === cluster && issue.server === server),
});

/** What is known of a server; its tools by name and digest. */
function summaryOf({ tools, accepted, ...rest }: DiscoveredServer) {
  return { ...rest, tools: tools.map(({ name }) => ({ name, accepted_digest: accepted[name] ?? null })) };
}
