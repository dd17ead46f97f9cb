import * as v from "valibot";
import { Slots } from "../domain/endpoint.ts";
import { FRP_SERVER } from "../domain/frp.ts";
import { Id, looseText, recordOf, Sha256 } from "../domain/primitives.ts";
import { RELAY_URL } from "../domain/relay-url.ts";
import { SchedulerChoice } from "../domain/scheduler.ts";
import { WORKER_PROGRAMS } from "../domain/worker-programs.ts";
import { canonicalJson, sha256Hex } from "../lib/digest.ts";
import { REMOTE_MCP_BOUNDS, RemoteMcpServer } from "./remote-mcp-server.ts";

export const DEFAULT_CAPACITY: Slots = { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} };
export const FRP_MODES = ["frp-stcp", "frp-xtcp"] as const;
export const MODES = ["local", "ssh", "relay", ...FRP_MODES] as const;
export const SSH_CLIENTS = ["builtin", "openssh"] as const;

/** Whether a login node may be said so: [user@]host, as ssh takes it. */
export const isSshHost = (text: string): boolean => HOST.test(text);
/** Whether a host may call itself so. */
export const isHostName = (text: string): boolean => HOST_NAME.test(text);
/** Whether it is the fingerprint of a host's key. */
export const isFingerprint = (text: string): boolean => FINGERPRINT.test(text);

/** What a host may be called, with a user's name before it or not: nothing that ssh, a shell or a log would take for something else. */
const HOST = /^(?:[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}@)?[A-Za-z0-9_.:%[\]][A-Za-z0-9_.:%[\]-]{0,254}$/;
/** A path on the cluster: absolute, or below the home directory there. */
const REMOTE_PATH = /^(?:~?\/)(?!.*(?:^|\/)\.\.(?:\/|$))[^\p{Cc}]{1,1022}$/u;
/** authorized_keys of sshd(8), with no options. */
const PUBLIC_KEY = /^ssh-ed25519 [A-Za-z0-9+/]{1,256}={0,2}(?: [^\p{Cc}]{0,256})?$/u;
/** RFC 1123, section 2.1. */
const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
/** As ssh-keygen -l prints it. */
const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/;

const RemotePath = v.nullable(v.pipe(v.string(), v.regex(REMOTE_PATH, "must be a path on the cluster, absolute or below ~/")));
const names = (pattern: RegExp, form: string) => v.pipe(v.array(v.pipe(v.string(), v.regex(pattern, form))), v.maxLength(64));

/** What must be true of the host that is reached, besides what ssh itself asks for. Empty: nothing. */
const TargetPins = v.strictObject({
  /** What it calls itself: one of these. */
  hostnames: v.optional(names(HOST_NAME, "must be the name of a host"), []),
  /** Its host key: one of these, whatever known_hosts says. */
  ssh_host_key_sha256: v.optional(names(FINGERPRINT, "must be SHA256: and 43 characters, as ssh-keygen -l prints it"), []),
  /** What the scheduler there calls its cluster. */
  scheduler_cluster_name: v.optional(v.nullable(looseText(256)), null),
  /** SHA-256 of the file that marks the site. */
  site_marker_sha256: v.optional(v.nullable(Sha256), null),
});

const SHARED = {
  name: Id,
  /** Shell text that runs before every job, for example `module load python`. */
  env_setup: v.optional(v.nullable(looseText(64 * 1024)), null),
  /** Whether a command of it that fails, fails the job. Absent: no. */
  env_setup_strict: v.exactOptional(v.boolean()),
  /** Whether agents may submit commands to it (docs/mcp.md). Absent: no. */
  agent_commands: v.exactOptional(v.boolean()),
  /** MCP servers there that agents are offered tools of, by name (docs/federation.md). Absent: none. */
  remote_mcp_servers: v.exactOptional(
    v.pipe(
      recordOf(Id, RemoteMcpServer),
      v.check((servers) => Object.keys(servers).length <= REMOTE_MCP_BOUNDS.servers, `at most ${REMOTE_MCP_BOUNDS.servers} servers`),
    ),
  ),
  worker_capacity: v.optional(Slots, DEFAULT_CAPACITY),
  /** The scheduler that its jobs may ask for. Absent: external, which is none. */
  scheduler_provider: v.exactOptional(SchedulerChoice),
  ...WORKER_PROGRAMS,
};

/** A file on this machine: absolute. */
const LocalPath = v.pipe(v.string(), v.regex(/^(?:\/|[A-Za-z]:[\\/])[^\p{Cc}]{0,1023}$/u, "must be an absolute path"));

/** The address of a relay-host. */
const RelayHost = v.pipe(
  v.string(),
  v.regex(RELAY_URL, "must be wss://HOST[/PATH], ws://…, tls://HOST[:PORT] or tcp://HOST[:PORT], with nothing secret in it"),
);

/** Its worker is reached by a socket on this machine. */
const LocalEntry = v.strictObject({
  ...SHARED,
  mode: v.literal("local"),
  /** Where the worker is met from elsewhere; absent: nowhere. */
  relay_host: v.exactOptional(RelayHost),
  relay_token_file: v.exactOptional(LocalPath),
  relay_ca_file: v.exactOptional(LocalPath),
});
export type LocalEntry = v.InferOutput<typeof LocalEntry>;

/** `[user@]host`, as ssh takes it: everything else about the way is in ssh_config(5). */
const SshHost = v.pipe(v.string(), v.regex(HOST, "must be [user@]host, as ssh takes it"));

/** What ssh needs to know about a cluster, besides the host. */
const OVER_SSH = {
  /** Who speaks SSH: this program, or an ssh process. */
  ssh_client: v.optional(v.picklist(SSH_CLIENTS), "builtin"),
  /** Where the installation and its state lie on the cluster; null: `~/.local/share/clio-relay`. */
  core_dir: v.optional(RemotePath, null),
  /** Where the output of jobs lies on the cluster; null: below core_dir. */
  spool_dir: v.optional(RemotePath, null),
  target_identity: v.optional(TargetPins, {}),
};

/** Who answers there. */
const WORKER = {
  /** Public key of the worker, as bootstrap took it from the host, or pairing proved it: who answers in sessions of its own. Null: not known yet. */
  worker_key: v.optional(v.nullable(v.pipe(v.string(), v.regex(PUBLIC_KEY, "must be a public ed25519 key on one line"))), null),
  /** The key that the worker has announced, in place of that one: it may answer, too. */
  next_worker_key: v.optional(v.nullable(v.pipe(v.string(), v.regex(PUBLIC_KEY, "must be a public ed25519 key on one line"))), null),
  /** What the worker calls the cluster, where that is not the name here. */
  worker_cluster: v.optional(v.nullable(Id), null),
  /** Of the worker that answered the first link, which stays for as long as its state on the cluster does. Null: not known yet. */
  worker_id: v.optional(v.nullable(Id), null),
};

/** Its worker is reached over one SSH connection to a login node. */
const SshEntry = v.strictObject({ ...SHARED, mode: v.literal("ssh"), ssh_host: SshHost, ...OVER_SSH, ...WORKER });
export type SshEntry = v.InferOutput<typeof SshEntry>;

/** Both sides dial out to a relay-host, which joins them. */
const RelayEntry = v.strictObject({
  ...SHARED,
  mode: v.literal("relay"),
  relay_host: RelayHost,
  /** A private file on this machine with the relay-host's token; null: CLIO_RELAY_HOST_TOKEN has it. */
  relay_token_file: v.optional(v.nullable(LocalPath), null),
  /** Certification authorities in PEM that vouch for it, besides the system's; absent: none. */
  relay_ca_file: v.exactOptional(LocalPath),
  /** For bootstrap and what else needs a host: the login node. Null: nothing is done there. */
  ssh_host: v.optional(v.nullable(SshHost), null),
  ...OVER_SSH,
  ...WORKER,
});
export type RelayEntry = v.InferOutput<typeof RelayEntry>;

/** Where frps is, and how it is spoken to. What is secret about it lies in a file of its own (frp-room.ts). */
const Frp = v.strictObject({
  ...FRP_SERVER,
  /** How long the direct way is tried, before the same frps carries it. */
  direct_timeout_seconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(60)), 10),
  /** A frpc that is on the cluster already; null: bootstrap brings one. */
  frpc_bin: v.optional(RemotePath, null),
});

/** Both sides dial out to a frps, each through a frpc of its own. Mode `frp-xtcp` tries the direct way first. */
const FrpEntry = v.strictObject({
  ...SHARED,
  mode: v.picklist(FRP_MODES),
  frp: Frp,
  /** As in mode relay. */
  ssh_host: v.optional(v.nullable(SshHost), null),
  ...OVER_SSH,
  ...WORKER,
});
export type FrpEntry = v.InferOutput<typeof FrpEntry>;

/** Whether its link is had through a frps. */
export const isFrp = (entry: ClusterEntry): entry is FrpEntry => entry.mode === "frp-stcp" || entry.mode === "frp-xtcp";

/** Both sides dial out, and the link comes up by itself. */
export type OutboundEntry = RelayEntry | FrpEntry;
export const isOutbound = (entry: ClusterEntry): entry is OutboundEntry => entry.mode === "relay" || isFrp(entry);

type Shared = Pick<ClusterEntry, keyof typeof SHARED>;

/** What an entry says of its cluster, whatever way leads to it. */
export const sharedOf = (entry: Shared): Shared =>
  Object.fromEntries(Object.entries(entry).filter(([member]) => Object.hasOwn(SHARED, member))) as unknown as Shared;

/** The cluster's host as ssh reaches it, whatever mode its link has; null where it is not reached so. */
export function sshView(entry: ClusterEntry): SshEntry | null {
  if (entry.mode === "ssh") return entry;
  if (entry.mode === "local" || entry.ssh_host === null) return null;
  const { ssh_host, ssh_client, core_dir, spool_dir, target_identity } = entry;
  const { worker_key, next_worker_key, worker_cluster, worker_id } = entry;
  return {
    ...sharedOf(entry),
    mode: "ssh",
    ssh_host,
    ssh_client,
    core_dir,
    spool_dir,
    target_identity,
    worker_key,
    next_worker_key,
    worker_cluster,
    worker_id,
  };
}

/** What is known of a cluster. The name is a label of this installation and means nothing elsewhere. The mode says how its worker is reached. */
export const ClusterEntry = v.variant("mode", [LocalEntry, SshEntry, RelayEntry, FrpEntry]);
export type ClusterEntry = v.InferOutput<typeof ClusterEntry>;
export type ClusterEntryInput = v.InferInput<typeof ClusterEntry>;

/** Of the form of the digest below; another form gets another number, so that a new release never looks like a new route. */
const ROUTE_FORM = "clio-relay.route.v1";

/**
 * SHA-256 over what decides where requests to a cluster go, as canonical JSON. What is at its default is left out, so that members that later
 * versions add change nothing for entries without them. Capacity, job environment and programs are no part of it.
 */
export function routeRevision(entry: ClusterEntry): string {
  const route: Record<string, unknown> = { form: ROUTE_FORM, name: entry.name, mode: entry.mode };
  const ssh = sshView(entry);
  if (entry.mode === "relay") route["relay_host"] = entry.relay_host;
  if (isFrp(entry)) {
    const { server_addr, server_port, protocol, stun_server } = entry.frp;
    route["frp"] = { server_addr, server_port, protocol, ...(stun_server === null ? {} : { stun_server }) };
  }
  if (ssh !== null) {
    const { hostnames, ssh_host_key_sha256: keys, scheduler_cluster_name, site_marker_sha256 } = ssh.target_identity;
    route["ssh_host"] = ssh.ssh_host;
    if (ssh.ssh_client !== "builtin") route["ssh_client"] = ssh.ssh_client;
    if (ssh.core_dir !== null) route["core_dir"] = ssh.core_dir;
    if (ssh.spool_dir !== null) route["spool_dir"] = ssh.spool_dir;
    if (hostnames.length > 0) route["hostnames"] = hostnames.toSorted();
    if (keys.length > 0) route["ssh_host_key_sha256"] = keys.toSorted();
    if (scheduler_cluster_name !== null) route["scheduler_cluster_name"] = scheduler_cluster_name;
    if (site_marker_sha256 !== null) route["site_marker_sha256"] = site_marker_sha256;
  }
  return sha256Hex(canonicalJson(route));
}
