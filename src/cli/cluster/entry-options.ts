import {
  type ClusterEntry,
  type ClusterEntryInput,
  DEFAULT_CAPACITY,
  type FrpEntry,
  isFingerprint,
  isHostName,
  isSshHost,
  MODES,
  SSH_CLIENTS,
} from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import type { WorkerPrograms } from "../../domain/worker-programs.ts";
import { schedulerChoice } from "../scheduler/choice.ts";
import { oneOf, type Reader, relayUrl, sha256, text, whole } from "../values.ts";
import { type FlagValues, list, option, toggle } from "../verb.ts";
import { CONTROL_DOC, capacityWith, kindLimit, SLOTS_DOC, slots } from "../worker/capacity-options.ts";
import { FRP, frpModeOf, frpOf, namesFrp, noFrps } from "./frp-options.ts";
import { PROGRAMS, programsWith } from "./program-options.ts";
import { refuseContradiction, UNSET, withoutUnset } from "./unset-options.ts";

/** Names of this machine: no way leads to it. */
const HERE = new Set(["localhost", "127.0.0.1", "::1"]);

/** One colon before digits, and no literal of IPv6 without brackets, which has more of them. */
const WITH_PORT = /^(?:.*@)?(?:[^:[\]]+|\[[^\]]*\]):\d*$/;

const sshHost: Reader<string> = {
  label: "[USER@]HOST",
  form: "[user@]host as ssh takes it, without a port",
  read: (given) => (WITH_PORT.test(given) || !isSshHost(given) ? undefined : given),
  hint: (given) =>
    WITH_PORT.test(given) ? "a port belongs into ~/.ssh/config: Host NAME, HostName ADDRESS, Port N; then --ssh-host NAME" : undefined,
};

const hostName: Reader<string> = {
  label: "NAME",
  form: "the name of a host, as hostname prints it",
  read: (given) => (isHostName(given) ? given : undefined),
};

const fingerprint: Reader<string> = {
  label: "SHA256:…",
  form: "SHA256: and 43 characters, as ssh-keygen -l prints it",
  read(given) {
    const whole = given.startsWith("SHA256:") ? given : `SHA256:${given}`;
    return isFingerprint(whole) ? whole : undefined;
  },
};

const remotePath: Reader<string> = {
  label: "DIR",
  form: "a path on the cluster: absolute, or below ~/ or $HOME/",
  read: (given) => (/^(?:~|\$HOME)?\/./.test(given) ? given.replace(/^\$HOME\//, "~/") : undefined),
  // What lies here says nothing of there.
  suggests: null,
};

/** What must be true of the host that is reached. */
export const PINS = {
  "target-hostname": list(hostName, "What the login node calls itself"),
  "ssh-host-key-sha256": list(fingerprint, "Fingerprint of its host key, as ssh-keygen -l prints it"),
  "scheduler-cluster-name": option(
    text("NAME"),
    "What the scheduler there calls its cluster (ClusterName of slurm.conf, or Grid Engine's)",
  ),
  "site-marker-sha256": option(
    sha256,
    "SHA-256 of the file that marks the site: /etc/clio-relay/site-marker there, else ~/.config/clio-relay/site-marker",
  ),
} as const;

/** Options that make up an entry. */
export const ENTRY = {
  mode: option(oneOf(...MODES), "How its worker is reached; relay where a relay-host is named, ssh where a host is"),
  "ssh-host": option(sshHost, "Login node, as ssh takes it; a port is said in ~/.ssh/config; localhost is another way to say --mode local"),
  "relay-host": option(relayUrl, "Relay-host at which both sides meet: wss://HOST[/PATH], ws://…, tls://HOST[:PORT], tcp://HOST[:PORT]"),
  "relay-token-file": option(
    text("FILE"),
    "Private file with the relay-host's token; - reads it from standard input, and CLIO_RELAY_HOST_TOKEN is taken where neither is given. Both are kept in a private file",
  ),
  "relay-ca-file": option(
    text("FILE"),
    "Certification authorities in PEM that vouch for the relay-host, besides those of the system; bootstrap brings them to the cluster",
  ),
  "ssh-client": option(oneOf(...SSH_CLIENTS), "Who speaks SSH: this program, or an ssh process, which has GSSAPI, FIDO keys and the rest"),
  "core-dir": option(remotePath, "Where installation and state lie on the cluster; ~/.local/share/clio-relay when it is not said"),
  "spool-dir": option(remotePath, "Where the output of jobs lies on the cluster"),
  ...PINS,
  ...FRP,
  ...UNSET,
  ...PROGRAMS,
  "env-setup-strict": toggle("A command of --env-setup that fails ends the job (env_setup_failed), as set -e has it"),
  "no-env-setup-strict": toggle("It may fail again"),
  "agent-commands": toggle("Agents may submit commands, by the tool relay_submit_command of mcp-server"),
  "no-agent-commands": toggle("They may not any more"),
  "scheduler-provider": option(
    schedulerChoice,
    "Scheduler that its jobs may ask for: slurm, gridengine, auto (whichever is found on its host) or external, which is none and what counts unless it is said",
  ),
  "worker-concurrency": option(slots, SLOTS_DOC),
  "worker-control-query-concurrency": option(whole(1, 10_000), CONTROL_DOC),
  "worker-kind-concurrency": list(kindLimit, "Jobs of one kind at a time"),
  "clear-kind-concurrency": toggle("No limits by kind any more"),
} as const;
type EntryFlags = FlagValues<typeof ENTRY>;

const FOR_SSH = ["ssh-client", "core-dir", "spool-dir", ...(Object.keys(PINS) as (keyof typeof PINS)[])] as const;

/**
 * An entry made of the one that there is and what the options say; what they do not name stays.
 *
 * @param setup shell text; null: none any more; undefined: as it was
 * @param files where the relay-host's token and its authorities lie; undefined: as it was
 * @throws RelayError usage where the options do not go together
 */
export function entryWith(
  name: string,
  there: ClusterEntry | null,
  flags: EntryFlags,
  setup: string | null | undefined,
  files: { readonly token?: string | undefined; readonly ca?: string | undefined } = {},
): ClusterEntryInput {
  refuseContradiction(flags);
  const before = withoutUnset(there, flags);
  const capacity = before?.worker_capacity ?? DEFAULT_CAPACITY;
  const shared = {
    name,
    ...setupWith(before, flags, setup),
    ...agentCommandsWith(before, flags),
    ...schedulerWith(before, flags),
    // Registrations have verbs of their own.
    ...(before?.remote_mcp_servers === undefined ? {} : { remote_mcp_servers: before.remote_mcp_servers }),
    ...programsWith(before, flags),
    worker_capacity: capacityWith(flags["clear-kind-concurrency"] ? { ...capacity, kind_concurrency: {} } : capacity, {
      concurrency: flags["worker-concurrency"],
      control: flags["worker-control-query-concurrency"],
      kinds: flags["worker-kind-concurrency"],
    }),
  };
  const mode = modeOf(before, flags);
  const relay = { relay_host: flags["relay-host"], relay_token_file: files.token, relay_ca_file: files.ca };
  if (mode === "frp-stcp" || mode === "frp-xtcp") return frpEntry(shared, mode, before, flags);
  if (namesFrp(flags)) throw noFrps();
  if (mode === "local") return localEntry(shared, before, flags, relay);
  return mode === "ssh" ? sshEntry(shared, before, flags) : relayEntry(shared, before, flags, relay);
}

/** @throws RelayError usage where there is no text that could be strict */
function setupWith(
  before: ClusterEntry | null,
  flags: EntryFlags,
  setup: string | null | undefined,
): Pick<ClusterEntry, "env_setup" | "env_setup_strict"> {
  const [strict, lenient] = [flags["env-setup-strict"], flags["no-env-setup-strict"]];
  if (strict && lenient) throw new RelayError("usage", "--env-setup-strict and --no-env-setup-strict exclude each other");
  const env_setup = setup === undefined ? (before?.env_setup ?? null) : setup;
  if (strict && env_setup === null) throw new RelayError("usage", "--env-setup-strict needs --env-setup: there is no text that could fail");
  const kept = env_setup !== null && !lenient && before?.env_setup_strict === true;
  return { env_setup, ...(strict || kept ? { env_setup_strict: true } : {}) };
}

function agentCommandsWith(before: ClusterEntry | null, flags: EntryFlags): Pick<ClusterEntry, "agent_commands"> {
  const [given, taken] = [flags["agent-commands"], flags["no-agent-commands"]];
  if (given && taken) throw new RelayError("usage", "--agent-commands and --no-agent-commands exclude each other");
  return given || (!taken && before?.agent_commands === true) ? { agent_commands: true } : {};
}

function schedulerWith(before: ClusterEntry | null, flags: EntryFlags): Pick<ClusterEntry, "scheduler_provider"> {
  const scheduler_provider = flags["scheduler-provider"] ?? before?.scheduler_provider;
  return scheduler_provider === undefined ? {} : { scheduler_provider };
}

/** @throws RelayError usage where the options name several */
function modeOf(before: ClusterEntry | null, flags: EntryFlags): ClusterEntry["mode"] {
  const host = flags["ssh-host"];
  const here = host !== undefined && HERE.has(host);
  const { mode = flags["relay-host"] !== undefined ? "relay" : frpModeOf(before, flags) } = flags;
  if (flags["relay-host"] !== undefined && flags["frp-server-addr"] !== undefined) {
    throw new RelayError("usage", "--relay-host and --frp-server-addr exclude each other");
  }
  if ((here && mode !== undefined && mode !== "local") || (mode === "local" && host !== undefined && !here)) {
    throw new RelayError("usage", `--mode ${mode} and --ssh-host ${JSON.stringify(host)} exclude each other`);
  }
  if (mode !== undefined) return mode;
  // What is met elsewhere may have a login node besides.
  if (host === undefined || (before?.mode === "relay" && !here)) return before?.mode ?? "local";
  return here ? "local" : "ssh";
}

/** What options say of a relay-host. */
interface RelayFlags {
  readonly relay_host: string | undefined;
  readonly relay_token_file: string | undefined;
  readonly relay_ca_file: string | undefined;
}

type Shared = Pick<ClusterEntry, "name" | "env_setup" | "env_setup_strict" | "worker_capacity" | "scheduler_provider"> & WorkerPrograms;

function localEntry(shared: Shared, before: ClusterEntry | null, flags: EntryFlags, relay: RelayFlags): ClusterEntryInput {
  const foreign = FOR_SSH.find((option) => (Array.isArray(flags[option]) ? flags[option].length > 0 : flags[option] !== undefined));
  if (foreign !== undefined) {
    const instead = foreign === "core-dir" || foreign === "spool-dir" ? `CLIO_RELAY_${foreign.toUpperCase().replace("-", "_")}` : null;
    throw new RelayError(
      "usage",
      `--${foreign} is for clusters that are reached by ssh, and ${shared.name} is on this machine`,
      {},
      instead === null ? "add --ssh-host HOST" : `set ${instead} for the worker`,
    );
  }
  const { relay_host, relay_token_file, ca } = relayOf(before, relay);
  return {
    ...shared,
    mode: "local",
    ...(relay_host === null ? {} : { relay_host }),
    ...(relay_token_file === null ? {} : { relay_token_file }),
    ...ca,
  };
}

/** What is known of a relay-host, and what options say instead. Another relay-host has another token, and others vouch for it. */
function relayOf(
  before: ClusterEntry | null,
  given: RelayFlags,
): { relay_host: string | null; relay_token_file: string | null; ca: { relay_ca_file?: string } } {
  const known = before !== null && "relay_host" in before ? before : null;
  const relay_host = given.relay_host ?? known?.relay_host ?? null;
  const same = relay_host !== null && relay_host === known?.relay_host;
  const file = given.relay_ca_file ?? (same ? known?.relay_ca_file : undefined);
  if (file !== undefined && relay_host === null) throw new RelayError("usage", "--relay-ca-file needs --relay-host");
  return {
    relay_host,
    relay_token_file: given.relay_token_file ?? (same ? (known?.relay_token_file ?? null) : null),
    ca: file === undefined ? {} : { relay_ca_file: file },
  };
}

function relayEntry(shared: Shared, before: ClusterEntry | null, flags: EntryFlags, relay: RelayFlags): ClusterEntryInput {
  const { relay_host, relay_token_file, ca } = relayOf(before, relay);
  if (relay_host === null)
    throw new RelayError("usage", "--relay-host is missing", {}, "--relay-host wss://HOST names the relay-host at which both sides meet");
  const known = before === null || before.mode === "local" ? null : before;
  const ssh_host = flags["ssh-host"] ?? known?.ssh_host ?? null;
  return {
    ...shared,
    mode: "relay",
    relay_host,
    relay_token_file,
    ...ca,
    ssh_host,
    ...overSsh(known, flags),
    ...workerOf(known, ssh_host),
  } as ClusterEntryInput;
}

function frpEntry(shared: Shared, mode: FrpEntry["mode"], before: ClusterEntry | null, flags: EntryFlags): ClusterEntryInput {
  const known = before === null || before.mode === "local" ? null : before;
  const ssh_host = flags["ssh-host"] ?? known?.ssh_host ?? null;
  return {
    ...shared,
    mode,
    frp: frpOf(before, flags),
    ssh_host,
    ...overSsh(known, flags),
    ...workerOf(known, ssh_host),
  } as ClusterEntryInput;
}

function sshEntry(shared: Shared, before: ClusterEntry | null, flags: EntryFlags): ClusterEntryInput {
  const given = (["host", "token-file", "ca-file"] as const).find((option) => flags[`relay-${option}`] !== undefined);
  if (given !== undefined) throw new RelayError("usage", `--relay-${given} is for clusters of mode relay`);
  const known = before === null || before.mode === "local" ? null : before;
  const ssh_host = flags["ssh-host"] ?? known?.ssh_host ?? undefined;
  if (ssh_host === undefined)
    throw new RelayError("usage", "--ssh-host is missing", {}, "--ssh-host HOST names the login node, as ssh takes it");
  return { ...shared, mode: "ssh", ssh_host, ...overSsh(known, flags), ...workerOf(known, ssh_host) } as ClusterEntryInput;
}

type Elsewhere = Exclude<ClusterEntry, { mode: "local" }>;

const overSsh = (known: Elsewhere | null, flags: EntryFlags) => ({
  ssh_client: flags["ssh-client"] ?? known?.ssh_client,
  core_dir: flags["core-dir"] ?? known?.core_dir,
  spool_dir: flags["spool-dir"] ?? known?.spool_dir,
  target_identity: pinsWith(known, flags),
});

/** Another host has another worker; one that becomes known has not. */
function workerOf(known: Elsewhere | null, sshHost: string | null) {
  const same = known !== null && (known.ssh_host === null || known.ssh_host === sshHost);
  if (!same) return { worker_key: null, next_worker_key: null, worker_cluster: null, worker_id: null };
  const { worker_key, next_worker_key, worker_cluster, worker_id } = known;
  return { worker_key, next_worker_key, worker_cluster, worker_id };
}

/** The pins of an entry, with those that are given in place of the ones of their kind. */
export function pinsWith(known: Pick<Elsewhere, "target_identity"> | null, flags: FlagValues<typeof PINS>) {
  const given = <T>(values: readonly T[], otherwise: readonly T[] | undefined): T[] => [
    ...(values.length > 0 ? values : (otherwise ?? [])),
  ];
  return {
    hostnames: given(flags["target-hostname"], known?.target_identity.hostnames),
    ssh_host_key_sha256: given(flags["ssh-host-key-sha256"], known?.target_identity.ssh_host_key_sha256),
    scheduler_cluster_name: flags["scheduler-cluster-name"] ?? known?.target_identity.scheduler_cluster_name ?? null,
    site_marker_sha256: flags["site-marker-sha256"] ?? known?.target_identity.site_marker_sha256 ?? null,
  };
}
