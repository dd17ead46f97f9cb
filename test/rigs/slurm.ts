import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { removeTree } from "../runner/remove.ts";
import { eventually } from "../runner/wait.ts";
import { freePort } from "./free-port.ts";

export interface SlurmOptions {
  /** With MariaDB and slurmdbd, so that sacct answers. */
  readonly accounting?: boolean;
  /** Nodes, each a slurmd of its own on this host. */
  readonly nodes?: number;
  /** GPUs of each node, that are counted and are no devices. */
  readonly gpus?: number;
  /** What a job asks for of memory is all that its processes can have: the kernel ends what takes more. See `noMemoryBound`. */
  readonly boundsMemory?: boolean;
  /** Another cluster of this host's, with accounts: this one keeps its own in the same ones, as the clusters of a site do. */
  readonly beside?: Slurm;
  /** Further lines of slurm.conf(5). */
  readonly config?: readonly string[];
}

export type SlurmDaemon = "slurmctld" | "slurmdbd" | "mariadbd";

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** A real SLURM of this machine without systemd: a controller, some nodes, and accounting where it is wanted. All its state is in one directory; root only. */
export class Slurm implements AsyncDisposable {
  readonly #children = new Map<string, Bun.Subprocess>();
  readonly #ports = new Map<string, number>();
  readonly #options: Required<Omit<SlurmOptions, "beside">> & Pick<SlurmOptions, "beside">;
  #databaseDirectory = "";
  #clean = true;

  private constructor(
    /** Everything of it; other users may look into it. */
    readonly directory: string,
    options: SlurmOptions,
  ) {
    this.#options = { accounting: false, nodes: 1, gpus: 0, boundsMemory: false, config: [], ...options };
  }

  static async start(options: SlurmOptions = {}): Promise<Slurm> {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "slurm-"));
    fs.chmodSync(directory, 0o755);
    const slurm = new Slurm(directory, options);
    try {
      await slurm.#up();
      return slurm;
    } catch (error) {
      const said = slurm.logs();
      await slurm[Symbol.asyncDispose]();
      throw new Error(`SLURM did not come up: ${said}`, { cause: error });
    }
  }

  /** What whoever uses it has to have in its environment. */
  get variables(): Readonly<Record<string, string>> {
    return { PATH, HOME: "/root", USER: "root", LOGNAME: "root", SLURM_CONF: this.#at("slurm.conf") };
  }

  /** What the cluster is called. */
  get name(): string {
    return this.#options.beside === undefined ? "demo" : "other";
  }

  /** Whose munged and slurmdbd are used. */
  get #site(): Slurm {
    return this.#options.beside ?? this;
  }

  #at(...names: readonly string[]): string {
    return path.join(this.directory, ...names);
  }

  /** The ends of the daemons' logs. */
  logs(): string {
    const files = fs.readdirSync(this.directory).filter((name) => /\.(?:log|out)$/.test(name));
    return files.map((name) => `${name}: ${fs.readFileSync(this.#at(name), "utf8").slice(-1_000)}`).join("\n");
  }

  /** Run one of SLURM's commands, which has to succeed; its output. */
  must(...argv: readonly [string, ...string[]]): string {
    const { status, stdout, stderr } = this.run(...argv);
    if (status !== 0) throw new Error(`${argv.join(" ")} ended with ${status}: ${stderr}`);
    return stdout;
  }

  run(...[program, ...args]: readonly [string, ...string[]]): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(program, args, { encoding: "utf8", env: { ...this.variables, TZ: "UTC" }, timeout: 20_000 });
  }

  /** Let a daemon stand still, or go on. */
  signal(name: SlurmDaemon, signal: "SIGSTOP" | "SIGCONT"): void {
    this.#children.get(name)?.kill(signal);
  }

  /** SIGKILL a daemon. */
  async kill(name: SlurmDaemon): Promise<void> {
    const child = this.#children.get(name);
    child?.kill("SIGKILL");
    await child?.exited;
  }

  /** Start a daemon that was killed, with the state that it has left. */
  async restart(name: SlurmDaemon): Promise<void> {
    if (name === "slurmctld") this.#controller();
    else if (name === "slurmdbd") this.#start("slurmdbd", ["slurmdbd", "-D"]);
    else this.#database();
    await eventually(() => this.run("scontrol", "ping").stdout.includes("UP"), { what: "the controller" });
  }

  #start(name: string, argv: readonly string[]): void {
    const output = Bun.file(this.#at(`${name}.out`));
    const mark = process.env["CLIO_RELAY_TEST_RUN"];
    const env = { ...this.variables, ...(mark === undefined ? {} : { CLIO_RELAY_TEST_RUN: mark }) };
    this.#children.set(name, Bun.spawn([...argv], { env, cwd: this.directory, stdin: "ignore", stdout: output, stderr: output }));
  }

  #controller(): void {
    this.#start("slurmctld", ["slurmctld", "-D", ...(this.#clean ? ["-c"] : [])]);
    this.#clean = false;
  }

  #nodeNames(): string[] {
    // Control groups have a node's name, and are the machine's.
    const name = this.#options.boundsMemory ? `rig${process.pid}n` : this.#site === this ? "rig" : "far";
    return Array.from({ length: this.#options.nodes }, (_, index) => `${name}${index + 1}`);
  }

  async #up(): Promise<void> {
    const { accounting, nodes } = this.#options;
    for (const name of ["slurmctld", "slurmdbd", "mariadbd", ...this.#nodeNames()]) this.#ports.set(name, await freePort());
    for (const name of ["state", "spool"]) fs.mkdirSync(this.#at(name));
    this.#configure();
    if (this.#site === this) await this.#makeMunge();
    if (accounting) await this.#account();
    this.#controller();
    for (const name of this.#nodeNames()) this.#start(name, ["slurmd", "-D", "-N", name]);
    await eventually(
      () => this.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.trim().split("\n").filter(Boolean).length === nodes,
      { what: "SLURM's nodes" },
    );
  }

  async #makeMunge(): Promise<void> {
    fs.writeFileSync(this.#at("munge.key"), crypto.getRandomValues(new Uint8Array(128)), { mode: 0o600 });
    const file = (suffix: string): string => this.#at(`munge.${suffix}`);
    this.#start("munged", [
      ...["munged", "--foreground", "--force", `--key-file=${file("key")}`, `--socket=${file("socket")}`],
      ...[`--pid-file=${file("pid")}`, `--log-file=${file("log")}`, `--seed-file=${file("seed")}`],
    ]);
    await eventually(() => fs.existsSync(file("socket")), { what: "munged" });
  }

  #configure(): void {
    const { accounting, gpus, boundsMemory, config } = this.#options;
    const port = (name: string): number => this.#ports.get(name)!;
    const host = os.hostname().split(".")[0]!;
    const slurm = [
      `ClusterName=${this.name}`,
      `SlurmctldHost=${host}(127.0.0.1)`,
      "SlurmUser=root",
      "SlurmdUser=root",
      "AuthType=auth/munge",
      `AuthInfo=socket=${this.#site.#at("munge.socket")}`,
      "CredType=cred/munge",
      "MpiDefault=none",
      "ProctrackType=proctrack/linuxproc",
      `TaskPlugin=task/${boundsMemory ? "cgroup" : "none"}`,
      "SelectType=select/cons_tres",
      `SelectTypeParameters=${boundsMemory ? "CR_Core_Memory" : "CR_Core"}`,
      "SchedulerType=sched/builtin",
      "SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0",
      `SlurmctldPidFile=${this.#at("slurmctld.pid")}`,
      `SlurmdPidFile=${this.#at("%n.pid")}`,
      `SlurmctldPort=${port("slurmctld")}`,
      `StateSaveLocation=${this.#at("state")}`,
      `SlurmdSpoolDir=${this.#at("spool", "%n")}`,
      `SlurmctldLogFile=${this.#at("slurmctld.log")}`,
      `SlurmdLogFile=${this.#at("%n.log")}`,
      "SlurmdParameters=config_overrides",
      "SwitchType=switch/none",
      "JobCompType=jobcomp/none",
      "MessageTimeout=5",
      "KillWait=2",
      "ReturnToService=2",
      "PropagateResourceLimitsExcept=ALL",
      ...(accounting
        ? [
            "JobAcctGatherType=jobacct_gather/linux",
            "AccountingStorageType=accounting_storage/slurmdbd",
            "AccountingStorageHost=localhost",
            `AccountingStoragePort=${this.#site.#ports.get("slurmdbd")!}`,
            `AccountingStoragePass=${this.#site.#at("munge.socket")}`,
          ]
        : ["JobAcctGatherType=jobacct_gather/none"]),
      ...(gpus > 0 ? ["GresTypes=gpu"] : []),
      ...this.#nodeNames().map(
        (name) =>
          `NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${port(name)} CPUs=4 RealMemory=1000${gpus > 0 ? ` Gres=gpu:${gpus}` : ""} State=UNKNOWN`,
      ),
      `PartitionName=debug Nodes=${this.#nodeNames().join(",")} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO`,
      ...config,
    ];
    fs.writeFileSync(this.#at("slurm.conf"), `${slurm.join("\n")}\n`);
    if (gpus > 0) this.#makeGpus(gpus);
    if (boundsMemory) fs.writeFileSync(this.#at("cgroup.conf"), MEMORY_BOUND);
    if (!accounting || this.#site !== this) return;
    const database = [
      "AuthType=auth/munge",
      `AuthInfo=socket=${this.#site.#at("munge.socket")}`,
      "DbdHost=localhost",
      `DbdPort=${port("slurmdbd")}`,
      "SlurmUser=root",
      `LogFile=${this.#at("slurmdbd.log")}`,
      `PidFile=${this.#at("slurmdbd.pid")}`,
      "StorageType=accounting_storage/mysql",
      "StorageHost=127.0.0.1",
      `StoragePort=${port("mariadbd")}`,
      "StorageUser=slurm",
      "StoragePass=demo",
      "StorageLoc=slurm_acct_db",
    ];
    // slurmdbd looks for it beside SLURM_CONF.
    fs.writeFileSync(this.#at("slurmdbd.conf"), `${database.join("\n")}\n`, { mode: 0o600 });
  }

  /** A GPU has to have a file; nothing opens it. */
  #makeGpus(count: number): void {
    fs.mkdirSync(this.#at("gpus"));
    for (let index = 0; index < count; index++) fs.writeFileSync(this.#at("gpus", `nvidia${index}`), "");
    const files = this.#at("gpus", `nvidia[0-${count - 1}]`);
    fs.writeFileSync(
      this.#at("gres.conf"),
      this.#nodeNames()
        .map((name) => `NodeName=${name} Name=gpu File=${files}\n`)
        .join(""),
    );
  }

  #database(): void {
    this.#start("mariadbd", [
      ...["mariadbd", "--no-defaults", "--user=root", `--datadir=${this.#databaseDirectory}`, `--socket=${this.#at("m.sock")}`],
      ...[`--port=${this.#ports.get("mariadbd")}`, "--bind-address=127.0.0.1", `--pid-file=${this.#at("mariadb.pid")}`],
      ...["--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0", "--skip-sync-binlog"],
    ]);
  }

  async #account(): Promise<void> {
    if (this.#site === this) await this.#startAccounts();
    await eventually(() => this.run("sacctmgr", "-i", "-Q", "add", "cluster", this.name).status === 0, { what: "slurmdbd" });
  }

  async #startAccounts(): Promise<void> {
    this.#databaseDirectory = databaseDirectory();
    const options = ["--no-defaults", "--user=root", `--datadir=${this.#databaseDirectory}`, "--auth-root-authentication-method=normal"];
    this.must("mariadb-install-db", ...options, "--skip-test-db");
    this.#database();
    const sql = (statement: string): boolean =>
      this.run("mariadb", "--no-defaults", "-S", this.#at("m.sock"), "-e", statement).status === 0;
    await eventually(() => sql("select 1"), { what: "the database" });
    for (const host of ["127.0.0.1", "localhost"]) {
      sql(`CREATE USER IF NOT EXISTS slurm@'${host}' IDENTIFIED BY 'demo'; GRANT ALL ON slurm_acct_db.* TO slurm@'${host}'`);
    }
    this.#start("slurmdbd", ["slurmdbd", "-D"]);
  }

  /** End it with every job that runs in it. */
  async [Symbol.asyncDispose](): Promise<void> {
    // The controller first, or it would see its nodes and jobs fail one by one.
    for (const name of ["slurmctld", ...this.#nodeNames(), "slurmdbd", "mariadbd", "munged"]) {
      const child = this.#children.get(name);
      child?.kill("SIGKILL");
      await child?.exited;
    }
    // Steps outlive their node's daemon; each of them and every job has the name of this directory in its environment.
    await eventually(() => endBelow(this.directory) === 0, { what: "the end of SLURM's jobs" });
    if (this.#databaseDirectory !== "") removeTree(this.#databaseDirectory);
    if (this.#options.boundsMemory) for (const name of this.#nodeNames()) await removeGroups(path.join(MEMORY_GROUPS, `slurm_${name}`));
    removeTree(this.directory);
  }
}

const MEMORY_GROUPS = "/sys/fs/cgroup/memory";
const MEMORY_BOUND = `CgroupPlugin=cgroup/v1
CgroupMountpoint=${path.dirname(MEMORY_GROUPS)}
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
`;

/** Why a SLURM of this machine cannot bound its jobs' memory; null where it can. Its plugin for cgroup v2 wants a systemd. */
export function noMemoryBound(): string | null {
  const group = path.join(MEMORY_GROUPS, `clio-relay-probe-${process.pid}`);
  try {
    fs.mkdirSync(group);
    fs.rmdirSync(group);
    return null;
  } catch (error) {
    return `no groups can be made in ${MEMORY_GROUPS} (cgroup v1): ${(error as Error).message}`;
  }
}

/** Remove a control group with those below it, once their last processes are gone. */
async function removeGroups(group: string): Promise<void> {
  if (!fs.existsSync(group)) return;
  for (const entry of fs.readdirSync(group, { withFileTypes: true }))
    if (entry.isDirectory()) await removeGroups(path.join(group, entry.name));
  await eventually(() => !fs.existsSync(group) || removed(group), { what: `the end of ${group}` });
}

function removed(group: string): boolean {
  try {
    fs.rmdirSync(group);
    return true;
  } catch {
    return false;
  }
}

/**
 * Where the database lies: in memory where that can be had, since the flushes of one that is made anew each time would cost more than all the rest. What processes
 * that are gone have left there is removed.
 */
function databaseDirectory(): string {
  const memory = "/dev/shm";
  const name = "clio-relay-slurm-";
  if (!fs.existsSync(memory)) return fs.mkdtempSync(path.join(os.tmpdir(), name));
  for (const entry of fs.readdirSync(memory)) {
    const owner = entry.startsWith(name) ? entry.slice(name.length).split("-", 1)[0]! : "";
    if (/^\d+$/.test(owner) && !fs.existsSync(`/proc/${owner}`)) removeTree(path.join(memory, entry));
  }
  return fs.mkdtempSync(path.join(memory, `${name}${process.pid}-`));
}

/** Kill what knows a directory by its environment or arguments; how many there were. */
export function endBelow(directory: string): number {
  let found = 0;
  for (const entry of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      const traces = ["environ", "cmdline"].map((name) => fs.readFileSync(`/proc/${entry}/${name}`, "latin1"));
      if (!traces.some((trace) => trace.includes(directory))) continue;
      found++;
      process.kill(Number(entry), "SIGKILL");
    } catch {
      // gone meanwhile
    }
  }
  return found;
}
