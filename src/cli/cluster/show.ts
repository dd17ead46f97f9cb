import { type ClusterEntry, isFrp, routeRevision, type SshEntry, sshView } from "../../config/cluster-entry.ts";
import { EXIT } from "../../domain/errors.ts";
import { slotsText } from "../print/slots-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";

const wayOf = ({ ssh_host, ssh_client, core_dir, spool_dir, target_identity: pins }: SshEntry) =>
  [
    ["login node", ssh_host],
    ["ssh client", ssh_client],
    ["installation in", core_dir],
    ["output in", spool_dir],
    ["pinned names", pins.hostnames.join(", ") || null],
    ["pinned keys", pins.ssh_host_key_sha256.join(", ") || null],
    ["pinned scheduler", pins.scheduler_cluster_name],
    ["pinned site", pins.site_marker_sha256],
  ] as const;

function meetingOf(entry: ClusterEntry): readonly (readonly [string, string | number])[] {
  if (entry.mode === "relay") return [["relay-host", entry.relay_host]];
  if (!isFrp(entry)) return [];
  const { protocol, server_addr, server_port } = entry.frp;
  return [["frps", `${protocol}://${server_addr}:${server_port}`]];
}

/** `external` is the word for one that is asked for nothing. */
const schedulerOf = ({ scheduler_provider: said = "external" }: ClusterEntry): string => (said === "external" ? "none (external)" : said);

export const verb = defineVerb({
  summary: "Show one cluster",
  ...NAMED,
  examples: [["cluster show local", "how it is configured"]],
  async run({ flags, args, io, json, relay }) {
    const entry = await relay.clusterEntry(nameOf(args, flags));
    if (json) await printJson(io.stdout, { ...entry, route_revision: routeRevision(entry) });
    else {
      const host = sshView(entry);
      const { kind_concurrency } = entry.worker_capacity;
      await printFields(io.stdout, [
        ["name", entry.name],
        ["mode", entry.mode],
        ...meetingOf(entry),
        ...(host === null ? [] : wayOf(host)),
        ["slots", slotsText(entry.worker_capacity)],
        ...Object.entries(kind_concurrency).map(([kind, limit]) => [`limit of ${kind}`, limit] as const),
        ["scheduler", schedulerOf(entry)],
        ["JARVIS-CD", entry.jarvis_bin ?? null],
        ["agent", entry.agent_bin ?? null],
        ["agent's adapter", entry.agent_adapter ?? null],
        ["agent's arguments", entry.agent_args === undefined ? null : JSON.stringify(entry.agent_args)],
        ["before every job", entry.env_setup],
        ["if it fails", entry.env_setup === null ? null : entry.env_setup_strict ? "the job fails" : "the job runs all the same"],
      ]);
    }
    return EXIT.ok;
  },
});
