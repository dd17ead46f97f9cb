import { type ClusterEntry, type ClusterEntryInput, DEFAULT_CAPACITY, MODES, SSH_CLIENTS } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { oneOf, type Reader, sha256, text, whole } from "../values.ts";
import { type FlagValues, list, option, toggle } from "../verb.ts";
import { capacityWith, kindLimit } from "../worker/capacity-options.ts";

/** Names of this machine: no way leads to it. */
const HERE = new Set(["", "localhost", "127.0.0.1", "::1"]);

const remotePath: Reader<string> = {
  label: "DIR",
  form: "a path on the cluster: absolute, or below ~/ or $HOME/",
  read: (given) => (/^(?:~|\$HOME)?\/./.test(given) ? given.replace(/^\$HOME\//, "~/") : undefined),
};

/** What must be true of the host that is reached. */
export const PINS = {
  "target-hostname": list(text("NAME"), "What the login node calls itself"),
  "ssh-host-key-sha256": list(text("SHA256:…"), "Fingerprint of its host key, as ssh-keygen -l prints it"),
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
  mode: option(oneOf(...MODES), "How its worker is reached; ssh where a host is named"),
  "ssh-host": option(text("[USER@]HOST"), "Login node, as ssh takes it; localhost is another way to say --mode local"),
  "ssh-client": option(oneOf(...SSH_CLIENTS), "Who speaks SSH: this program, or an ssh process, which has GSSAPI, FIDO keys and the rest"),
  "core-dir": option(remotePath, "Where installation and state lie on the cluster; ~/.local/share/clio-relay when it is not said"),
  "spool-dir": option(remotePath, "Where the output of jobs lies on the cluster"),
  ...PINS,
  "worker-concurrency": option(whole(2, 10_000), "Jobs at a time, control queries included"),
  "worker-control-query-concurrency": option(whole(1, 10_000), "How many of them are kept for control queries"),
  "worker-kind-concurrency": list(kindLimit, "Jobs of one kind at a time"),
  "clear-kind-concurrency": toggle("No limits by kind any more"),
} as const;
type EntryFlags = FlagValues<typeof ENTRY>;

const FOR_SSH = ["ssh-client", "core-dir", "spool-dir", ...(Object.keys(PINS) as (keyof typeof PINS)[])] as const;

/**
 * An entry made of the one that there is and what the options say; what they do not name stays.
 *
 * @param setup shell text; null: none any more; undefined: as it was
 * @throws RelayError usage where the options do not go together
 */
export function entryWith(
  name: string,
  before: ClusterEntry | null,
  flags: EntryFlags,
  setup: string | null | undefined,
): ClusterEntryInput {
  const capacity = before?.worker_capacity ?? DEFAULT_CAPACITY;
  const shared = {
    name,
    env_setup: setup === undefined ? (before?.env_setup ?? null) : setup,
    worker_capacity: capacityWith(flags["clear-kind-concurrency"] ? { ...capacity, kind_concurrency: {} } : capacity, {
      concurrency: flags["worker-concurrency"],
      control: flags["worker-control-query-concurrency"],
      kinds: flags["worker-kind-concurrency"],
    }),
  };
  const host = flags["ssh-host"];
  const named = host === undefined ? undefined : HERE.has(host) ? "local" : "ssh";
  if (flags.mode !== undefined && named !== undefined && flags.mode !== named) {
    throw new RelayError("usage", `--mode ${flags.mode} and --ssh-host ${JSON.stringify(host)} exclude each other`);
  }
  const mode = flags.mode ?? named ?? before?.mode ?? "local";
  return mode === "local" ? localEntry(shared, flags) : sshEntry(shared, before, flags);
}

type Shared = Pick<ClusterEntry, "name" | "env_setup" | "worker_capacity">;

function localEntry(shared: Shared, flags: EntryFlags): ClusterEntryInput {
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
  return { ...shared, mode: "local" };
}

function sshEntry(shared: Shared, before: ClusterEntry | null, flags: EntryFlags): ClusterEntryInput {
  const known = before?.mode === "ssh" ? before : null;
  const ssh_host = flags["ssh-host"] ?? known?.ssh_host;
  if (ssh_host === undefined) throw new RelayError("usage", "--ssh-host is missing");
  return {
    ...shared,
    mode: "ssh",
    ssh_host,
    ssh_client: flags["ssh-client"] ?? known?.ssh_client,
    core_dir: flags["core-dir"] ?? known?.core_dir,
    spool_dir: flags["spool-dir"] ?? known?.spool_dir,
    target_identity: pinsWith(known, flags),
    // Another host has another worker.
    worker_key: known?.ssh_host === ssh_host ? known.worker_key : null,
    worker_id: known?.ssh_host === ssh_host ? known.worker_id : null,
  } as ClusterEntryInput;
}

/** The pins of an entry, with those that are given in place of the ones of their kind. */
export function pinsWith(known: Extract<ClusterEntry, { mode: "ssh" }> | null, flags: FlagValues<typeof PINS>) {
  const given = <T>(values: readonly T[], otherwise: readonly T[] | undefined): T[] => [
    ...(values.length > 0 ? values : (otherwise ?? [])),
  ];
  return {
    hostnames: given(flags["target-hostname"], known?.target_identity.hostnames),
    ssh_host_key_sha256: given(
      flags["ssh-host-key-sha256"].map((print) => (print.startsWith("SHA256:") ? print : `SHA256:${print}`)),
      known?.target_identity.ssh_host_key_sha256,
    ),
    scheduler_cluster_name: flags["scheduler-cluster-name"] ?? known?.target_identity.scheduler_cluster_name ?? null,
    site_marker_sha256: flags["site-marker-sha256"] ?? known?.target_identity.site_marker_sha256 ?? null,
  };
}
