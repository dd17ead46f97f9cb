import * as v from "valibot";
import { ProcessIdentity } from "../../domain/attempt.ts";
import { Count, looseText, Sha256, Timestamp } from "../../domain/primitives.ts";
import { isOver } from "../../lib/system/process-identity.ts";
import type { Answer } from "../script/frame.ts";
import layout from "../script/layout.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import site from "../script/site.sh" with { type: "text" };
import probeText from "./probe.sh" with { type: "text" };

const SCRIPT: Script = { name: "probe", text: layout + site + probeText };
const word = looseText(1_024);

/** What a host is and what of clio-relay is on it. */
export const HostProbe = v.strictObject({
  os: word,
  machine: v.picklist(["x64", "arm64", "other"]),
  machine_name: word,
  kernel: word,
  hostname: word,
  boot_id: word,
  user: word,
  uid: Count,
  home: word,
  /** Without symbolic links. */
  home_real: word,
  libc: v.picklist(["glibc", "musl", "unknown"]),
  libc_version: v.nullable(word),
  avx2: v.boolean(),
  /** What can be pinned of the site, as far as the host has it. */
  site: v.strictObject({ marker_sha256: v.nullable(Sha256), scheduler_cluster_name: v.nullable(word) }),
  storage: v.strictObject({
    /** The installation's directory. */
    root: word,
    /** It, or the nearest directory above it that is there; where it was looked. */
    place: word,
    file_system: word,
    network: v.boolean(),
    read_only: v.boolean(),
    writable: v.boolean(),
    /** Whether a program that lies there can be started; null where none could be put there. */
    starts: v.nullable(v.boolean()),
    free_bytes: v.nullable(Count),
    free_inodes: v.nullable(Count),
  }),
  installation: v.strictObject({
    current: v.nullable(Sha256),
    previous: v.nullable(Sha256),
    versions: v.array(v.strictObject({ digest: Sha256, size: Count, version: v.nullable(word) })),
    /** What `current` said when it was asked for its version, and how that ended; null where there is none. */
    trial: v.nullable(v.strictObject({ exit_code: Count, said: word })),
    /** Something that is no link of ours in place of `current`. */
    foreign: v.nullable(word),
    /** Hosts from which this installation was changed. */
    nodes: v.array(word),
  }),
  /** Whether anything of the cluster's queue or spool is there. */
  queue: v.boolean(),
  /** The process that owns the cluster's queue, as its record says; null where there is none. */
  worker: v.nullable(
    v.strictObject({
      process: ProcessIdentity,
      since: v.nullable(Timestamp),
      /** Whether that is this host. */
      here: v.boolean(),
      /** Whether it runs; null where that cannot be seen from here. */
      alive: v.nullable(v.boolean()),
      program: v.nullable(word),
      digest: v.nullable(Sha256),
    }),
  ),
  systemd: v.strictObject({
    version: v.nullable(Count),
    /** What `systemctl --user is-system-running` says; null where there is no manager of the user's in reach. */
    user_manager: v.nullable(word),
    linger: v.nullable(v.boolean()),
  }),
  tools: v.array(word),
});
export type HostProbe = v.InferOutput<typeof HostProbe>;

export interface ProbeOptions {
  readonly cluster: string;
  /** The installation's directory on the host; null for the usual place. */
  readonly home: string | null;
  readonly signal: AbortSignal;
}

/**
 * Look at a host. Nothing that is not there is an error; absence is an answer.
 *
 * @throws RelayError as Remote.run
 */
export async function probeHost(remote: Remote, { cluster, home, signal }: ProbeOptions): Promise<HostProbe> {
  return read(accepted(await remote.run(SCRIPT, { values: { a_cluster: cluster, a_home: home ?? "" }, signal }), SCRIPT));
}

/** Kinds of file systems that other hosts may share. */
const NETWORK = /^(?:nfs|cifs|smb|lustre$|gpfs$|beegfs|ceph$|afs$|9p$|panfs|wekafs|orangefs|pvfs2|glusterfs|ocfs2|gfs2|fuse\.)/;
const DIGEST = /^[0-9a-f]{64}$/;

const MACHINES: Readonly<Record<string, HostProbe["machine"]>> = { x86_64: "x64", amd64: "x64", aarch64: "arm64", arm64: "arm64" };

function read(answer: Answer): HostProbe {
  const [kind = "", options = ""] = (answer.last("mount") ?? "").split(" ");
  const flags = options.split(",");
  const kib = answer.count("free_kib");
  const starts = answer.last("starts");
  const libc = answer.last("libc");
  return v.parse(HostProbe, {
    os: answer.one("os"),
    machine: MACHINES[answer.one("machine")] ?? "other",
    machine_name: answer.one("machine"),
    kernel: answer.one("kernel"),
    hostname: answer.one("hostname"),
    boot_id: answer.one("boot_id"),
    user: answer.one("user"),
    uid: answer.count("uid") ?? 0,
    home: answer.one("home"),
    home_real: answer.one("home_real"),
    libc: libc === "glibc" || libc === "musl" ? libc : "unknown",
    libc_version: answer.last("libc_version"),
    avx2: answer.one("avx2") === "yes",
    site: {
      marker_sha256: digestOrNull(answer.last("site_marker")),
      scheduler_cluster_name: answer.last("scheduler_cluster") || null,
    },
    storage: {
      root: answer.one("root"),
      place: answer.one("place"),
      file_system: kind === "" ? "unknown" : kind,
      network: NETWORK.test(kind),
      read_only: flags.includes("ro"),
      writable: answer.one("writable") === "yes",
      starts: starts === "yes" ? true : starts === "no" ? false : flags.includes("noexec") ? false : null,
      free_bytes: kib === null ? null : kib * 1_024,
      free_inodes: answer.count("free_inodes"),
    },
    installation: installationOf(answer),
    queue: answer.one("queue") === "yes",
    worker: workerOf(answer),
    systemd: {
      version: answer.count("systemd"),
      user_manager: answer.last("systemd_user") || null,
      linger: answer.last("linger") === null ? null : answer.last("linger") === "yes",
    },
    tools: answer.all("tool"),
  } satisfies HostProbe);
}

const digestOrNull = (text: string | null): string | null => (text !== null && DIGEST.test(text) ? text : null);

function installationOf(answer: Answer): HostProbe["installation"] {
  const exit = answer.count("current_exit");
  return {
    current: digestOrNull(answer.last("current")),
    previous: digestOrNull(answer.last("previous")),
    versions: answer.all("version").flatMap((line) => {
      const [digest = "", size = "", version = ""] = line.split(" ");
      return DIGEST.test(digest) && /^\d{1,15}$/.test(size) ? [{ digest, size: Number(size), version: version || null }] : [];
    }),
    trial: exit === null ? null : { exit_code: exit, said: (answer.last("current_said") ?? "").slice(0, 1_024) },
    foreign: answer.last("foreign"),
    nodes: answer.all("node"),
  };
}

/** As the queue's owner record has it; other members are none of ours. */
const OwnerRecord = v.object({ ...ProcessIdentity.entries, since: v.optional(v.unknown()) });

function workerOf(answer: Answer): HostProbe["worker"] {
  const text = answer.last("owner");
  if (text === null) return null;
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  const record = v.safeParse(OwnerRecord, data);
  if (!record.success) return null;
  const { since, ...process } = record.output;
  const here = process.hostname === answer.one("hostname") || (process.boot_id !== "" && process.boot_id === answer.one("boot_id"));
  const program = answer.last("owner_program") || null;
  const alive = here ? process.boot_id === answer.one("boot_id") && runs(answer.last("owner_stat"), process.start_time) : null;
  return {
    process,
    since: v.is(Timestamp, since) ? since : null,
    here,
    alive,
    program: alive === true ? program : null,
    digest: alive === true ? digestOrNull(/\/versions\/([0-9a-f]{64})\//.exec(program ?? "")?.[1] ?? null) : null,
  };
}

/** Whether a line of proc_pid_stat(5) is that of a process that started then and has not ended. */
function runs(stat: string | null, startTime: number): boolean {
  if (stat === null || stat === "") return false;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[19]) === startTime && !isOver({ state: fields[0] ?? "?", threads: Number(fields[17]) });
}
