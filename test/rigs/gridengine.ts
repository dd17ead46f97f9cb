import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { removeTree } from "../runner/remove.ts";
import { eventually } from "../runner/wait.ts";
import { freePort } from "./free-port.ts";
import { endBelow } from "./slurm.ts";

/** The programs themselves come first: the package's wrappers find out the architecture anew at each call, which takes them some 200 ms. */
const PATH = "/usr/lib/gridengine:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Where Debian's package has what is the same for every cluster. */
const PACKAGE = "/var/lib/gridengine";
const INITIALIZE = "/usr/share/gridengine/scripts/init_cluster";

export type GridEngineDaemon = "sge_qmaster" | "sge_execd";

/** A real Grid Engine of this machine without systemd: a master, an execution host, the queue `all.q` with four slots and the parallel environment `smp`. Root only. */
export class GridEngine implements AsyncDisposable {
  readonly #children = new Map<string, Bun.Subprocess>();
  #ports: { readonly master: number; readonly execution: number } = { master: 0, execution: 0 };

  private constructor(readonly directory: string) {}

  static async start(): Promise<GridEngine> {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "sge-"));
    fs.chmodSync(directory, 0o755);
    const engine = new GridEngine(directory);
    try {
      engine.#ports = { master: await freePort(), execution: await freePort() };
      engine.#make();
      await engine.#up();
      return engine;
    } catch (error) {
      const said = engine.logs();
      await engine[Symbol.asyncDispose]();
      throw new Error(`Grid Engine did not come up: ${said}`, { cause: error });
    }
  }

  /** What whoever uses it has to have in its environment. */
  get variables(): Readonly<Record<string, string>> {
    return {
      ...{ PATH, HOME: "/root", USER: "root", LOGNAME: "root", SGE_ROOT: this.#at("root"), SGE_CELL: "default" },
      ...{ SGE_QMASTER_PORT: String(this.#ports.master), SGE_EXECD_PORT: String(this.#ports.execution) },
    };
  }

  #at(...names: readonly string[]): string {
    return path.join(this.directory, ...names);
  }

  logs(): string {
    const files = ["sge_qmaster.out", "sge_execd.out", "qmaster/messages", "execd/localhost/messages"].filter((name) =>
      fs.existsSync(this.#at(name)),
    );
    return files.map((name) => `${name}: ${fs.readFileSync(this.#at(name), "utf8").slice(-1_000)}`).join("\n");
  }

  must(...argv: readonly [string, ...string[]]): string {
    const { status, stdout, stderr } = this.run(...argv);
    if (status !== 0) throw new Error(`${argv.join(" ")} ended with ${status}: ${stdout}${stderr}`);
    return stdout;
  }

  run(...[program, ...args]: readonly [string, ...string[]]): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(program, args, { encoding: "utf8", env: { ...this.variables, TZ: "UTC" }, timeout: 20_000 });
  }

  /** Let a daemon stand still, or go on. */
  signal(name: GridEngineDaemon, signal: "SIGSTOP" | "SIGCONT"): void {
    this.#children.get(name)?.kill(signal);
  }

  #make(): void {
    fs.mkdirSync(this.#at("root", "default", "common"), { recursive: true });
    for (const name of ["qmaster/job_scripts", "spooldb", "execd"]) fs.mkdirSync(this.#at(name), { recursive: true });
    for (const name of ["bin", "lib", "util", "utilbin"]) fs.symlinkSync(path.join(PACKAGE, name), this.#at("root", name));
    const common = (name: string, text: string): void => fs.writeFileSync(this.#at("root", "default", "common", name), text);
    common(
      "bootstrap",
      [
        ...["admin_user root", "default_domain none", "ignore_fqdn false", "spooling_method berkeleydb", "spooling_lib libspoolb"],
        ...[`spooling_params ${this.#at("spooldb")}`, "binary_path /usr/sbin", `qmaster_spool_dir ${this.#at("qmaster")}`],
        ...["security_mode none", "listener_threads 2", "worker_threads 2", "scheduler_threads 1", ""],
      ].join("\n"),
    );
    // 127.0.0.1 resolves to "localhost" first: every name of this host is an alias of it.
    common("host_aliases", `localhost ${os.hostname()}\n`);
    common("act_qmaster", "localhost\n");
    this.must(INITIALIZE, this.#at("root"), "default", this.#at("spooldb"), "root");
  }

  #start(name: GridEngineDaemon): void {
    const output = Bun.file(this.#at(`${name}.out`));
    const mark = process.env["CLIO_RELAY_TEST_RUN"];
    // SGE_ND: they stay in the foreground.
    const env = { ...this.variables, SGE_ND: "1", ...(mark === undefined ? {} : { CLIO_RELAY_TEST_RUN: mark }) };
    this.#children.set(
      name,
      Bun.spawn([`/usr/sbin/${name}`], { env, cwd: this.directory, stdin: "ignore", stdout: output, stderr: output }),
    );
  }

  /** A file for one of qconf's options that read one. */
  #file(name: string, lines: readonly string[]): string {
    fs.writeFileSync(this.#at(name), `${lines.join("\n")}\n`);
    return this.#at(name);
  }

  /** The settings that qconf prints, some of them changed. */
  #changed(text: string, changes: Readonly<Record<string, string>>): string[] {
    return text.split("\n").map((line) => {
      const key = line.split(/\s/, 1)[0]!;
      return Object.hasOwn(changes, key) ? `${key} ${changes[key]}` : line;
    });
  }

  async #up(): Promise<void> {
    this.#start("sge_qmaster");
    await eventually(() => this.run("qconf", "-sh").status === 0, { what: "sge_qmaster" });
    this.run("qconf", "-ah", "localhost");
    this.run("qconf", "-as", "localhost");
    const fast = { schedule_interval: "0:0:1", flush_submit_sec: "1", flush_finish_sec: "1", load_adjustment_decay_time: "0:0:0" };
    this.must("qconf", "-Msconf", this.#file("sched", this.#changed(this.must("qconf", "-ssconf"), fast)));
    const global = {
      min_uid: "0",
      min_gid: "0",
      execd_spool_dir: this.#at("execd"),
      reporting_params: "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 joblog=false sharelog=00:00:00",
    };
    this.must("qconf", "-Mconf", this.#file("global", this.#changed(this.must("qconf", "-sconf"), global)));
    this.must("qconf", "-Ahgrp", this.#file("hostgroup", ["group_name @allhosts", "hostlist localhost"]));
    this.must("qconf", "-Ap", this.#file("pe", PARALLEL_ENVIRONMENT));
    this.must("qconf", "-Aq", this.#file("queue", QUEUE));
    this.#start("sge_execd");
    // The last column holds the queue's state: empty where jobs may start.
    await eventually(() => /^all\.q@\S+\s+\S+\s+\S+\s+[\d.]+\s+\S+\s*$/m.test(this.run("qstat", "-f").stdout), { what: "sge_execd" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of ["sge_qmaster", "sge_execd"]) {
      const child = this.#children.get(name);
      child?.kill("SIGKILL");
      await child?.exited;
    }
    await eventually(() => endBelow(this.directory) === 0, { what: "the end of Grid Engine's jobs" });
    removeTree(this.directory);
  }
}

const none = (...names: readonly string[]): string[] => names.map((name) => `${name} NONE`);

/** sge_pe(5) */
const PARALLEL_ENVIRONMENT = [
  ...["pe_name smp", "slots 100", "user_lists NONE", "xuser_lists NONE", "start_proc_args NONE", "stop_proc_args NONE"],
  ...[
    "allocation_rule $pe_slots",
    "control_slaves FALSE",
    "job_is_first_task TRUE",
    "urgency_slots min",
    "accounting_summary FALSE",
    "qsort_args NONE",
  ],
];

/** queue_conf(5) */
const QUEUE = [
  ...[
    "qname all.q",
    "hostlist @allhosts",
    "seq_no 0",
    ...none("load_thresholds", "suspend_thresholds"),
    "nsuspend 1",
    "suspend_interval 00:05:00",
  ],
  ...[
    "priority 0",
    "min_cpu_interval 00:05:00",
    "processors UNDEFINED",
    "qtype BATCH",
    ...none("ckpt_list"),
    "pe_list smp",
    "rerun FALSE",
    "slots 4",
  ],
  ...["tmpdir /tmp", "shell /bin/bash", ...none("prolog", "epilog"), "shell_start_mode unix_behavior"],
  ...none("starter_method", "suspend_method", "resume_method", "terminate_method"),
  "notify 00:00:60",
  ...none("owner_list", "user_lists", "xuser_lists", "subordinate_list", "complex_values", "projects", "xprojects", "calendar"),
  "initial_state default",
  ...["rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem"].flatMap((name) => [`s_${name} INFINITY`, `h_${name} INFINITY`]),
];
