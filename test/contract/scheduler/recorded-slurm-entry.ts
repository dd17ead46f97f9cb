/**
 * SLURM's commands as releases that are not at hand print them: `recorded-slurm-entry.ts COMMAND ARGUMENTS`. It takes the options, and has the fields, that both its
 * oldest and its newest release have, and no other; jobs really run, four at a time. Its state lies beside SLURM_CONF, whose lines say which release it is.
 */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

interface Job {
  readonly id: number;
  readonly name: string;
  readonly partition: string;
  readonly script: string;
  readonly output: string;
  readonly workdir: string;
  readonly submitted: number;
  started?: number;
  ended?: number;
  state: string;
  code?: number;
  signal?: number;
}

const SLOTS = 4;
const directory = path.dirname(process.env["SLURM_CONF"]!);
const conf = Object.fromEntries(
  fs
    .readFileSync(process.env["SLURM_CONF"]!, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split("=") as [string, string]),
);
/** 20.11 says memory per node with a letter behind it, and that there are no accounts with a word. */
const old = conf["Version"]!.startsWith("20.");
const accounts = conf["Accounting"] === "yes";
const jobFile = (id: number, name = "job"): string => path.join(directory, "jobs", String(id), name);

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  sbatch: [
    ...["parsable", "job-name", "output", "error", "open-mode", "input", "chdir", "no-requeue", "nodes", "ntasks", "cpus-per-task", "gpus"],
    ...["gres", "mem", "time", "partition", "account", "qos", "constraint", "reservation", "exclusive", "clusters"],
  ],
  squeue: ["noheader", "all", "states", "sibling", "clusters", "jobs", "name", "format"],
  sacct: ["noheader", "parsable2", "delimiter", "allocations", "federation", "clusters", "jobs", "name", "starttime", "format"],
  scontrol: ["clusters", "oneliner"],
  scancel: ["clusters", "name", "batch", "signal"],
};

function fail(message: string, code = 1): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

const two = (value: number): string => String(value).padStart(2, "0");
const time = (at: number | undefined, none: string): string => (at === undefined ? none : new Date(at).toISOString().slice(0, 19));
const duration = (ms: number): string => `${Math.floor(ms / 60_000)}:${two(Math.floor(ms / 1_000) % 60)}`;
const elapsed = (job: Job): number => (job.started === undefined ? 0 : (job.ended ?? Date.now()) - job.started);

/** One at a time. */
function locked<T>(work: () => T): T {
  const lock = path.join(directory, "lock");
  for (;;) {
    try {
      fs.mkdirSync(lock);
      break;
    } catch {
      Bun.sleepSync(2);
    }
  }
  try {
    return work();
  } finally {
    fs.rmdirSync(lock);
  }
}

function jobs(): Job[] {
  const ids = fs
    .readdirSync(path.join(directory, "jobs"))
    .map(Number)
    .sort((a, b) => a - b);
  return ids.map((id) => JSON.parse(fs.readFileSync(jobFile(id), "utf8")) as Job);
}

const write = (job: Job): void => fs.writeFileSync(jobFile(job.id), JSON.stringify(job));

/** Notice ends, and start what has its turn. */
function step(): Job[] {
  const all = jobs();
  for (const job of all) {
    if (job.state !== "RUNNING" || !fs.existsSync(jobFile(job.id, "code"))) continue;
    const status = Number(fs.readFileSync(jobFile(job.id, "code"), "utf8"));
    if (Number.isNaN(status)) continue;
    const canceled = fs.existsSync(jobFile(job.id, "canceled"));
    job.ended = Date.now();
    job.state = canceled ? "CANCELLED" : status === 0 ? "COMPLETED" : "FAILED";
    Object.assign(job, canceled || status > 128 ? { code: 0, signal: canceled ? 15 : status - 128 } : { code: status, signal: 0 });
    write(job);
  }
  for (const job of all) {
    if (job.state !== "PENDING" || all.filter(({ state }) => state === "RUNNING").length >= SLOTS) continue;
    const line = `cd "$1" && sh "$2" </dev/null >>"$3" 2>&1 & echo $! >"$4/pid"; wait $!; echo $? >"$4/code"`;
    const args = ["-c", line, "sh", job.workdir, job.script, job.output, path.dirname(jobFile(job.id))];
    spawn("sh", args, { stdio: "ignore", detached: true, cwd: "/" }).unref();
    job.started = Date.now();
    job.state = "RUNNING";
    write(job);
  }
  return all;
}

const [command, ...args] = process.argv.slice(2) as [string, ...string[]];
if (args[0] === "--version") {
  console.log(`slurm ${conf["Version"]}`);
  process.exit(0);
}
const options = new Map<string, string>();
const words: string[] = [];
for (const arg of args) {
  const match = /^--([\w-]+)(?:=(.*))?$/s.exec(arg);
  if (match === null) words.push(arg);
  else if (!OPTIONS[command]!.includes(match[1]!))
    fail(`${command}: unrecognized option '${arg}'\nTry "${command} --help" for more information`);
  else options.set(match[1]!, match[2] ?? "");
}
const ids = (options.get("jobs") ?? "").split(",").filter(Boolean).map(Number);
const chosen = (job: Job): boolean =>
  (ids.length === 0 || ids.includes(job.id)) && (!options.has("name") || options.get("name") === job.name);

function sbatch(): void {
  if (![undefined, "debug"].includes(options.get("partition"))) {
    fail(
      `sbatch: error: invalid partition specified: ${options.get("partition")}\nsbatch: error: Batch job submission failed: Invalid partition name specified`,
    );
  }
  process.stderr.write("sbatch: lua: your job goes to the default partition\n");
  const id = locked(() => {
    const next = jobs().length + 1;
    fs.mkdirSync(path.dirname(jobFile(next)));
    const output = options.get("output")!.replaceAll("%%", "%");
    // sbatch takes a copy of the script.
    const script = jobFile(next, "script");
    fs.copyFileSync(words[0]!, script);
    write({
      id: next,
      name: options.get("job-name")!,
      partition: "debug",
      script,
      output,
      workdir: options.get("chdir")!,
      submitted: Date.now(),
      state: "PENDING",
    });
    step();
    return next;
  });
  console.log(options.has("clusters") ? `${id};${options.get("clusters")}` : String(id));
}

const LETTERS: Readonly<Record<string, (job: Job) => string>> = {
  A: ({ id }) => String(id),
  i: ({ id }) => String(id),
  T: ({ state }) => state,
  r: ({ state }) => (state === "PENDING" ? "Resources" : state === "FAILED" ? "NonZeroExitCode" : "None"),
  P: ({ partition }) => partition,
  q: () => (accounts ? "normal" : "(null)"),
  a: () => (accounts ? "root" : "(null)"),
  u: () => "root",
  D: () => "1",
  C: () => "1",
  m: () => "1000M",
  N: ({ started }) => (started === undefined ? "" : "n01"),
  V: ({ submitted }) => time(submitted, "N/A"),
  S: ({ started }) => time(started, "N/A"),
  e: ({ ended }) => time(ended, old ? "N/A" : "NONE"),
  M: (job) => duration(elapsed(job)),
  l: () => "UNLIMITED",
  j: ({ name }) => name,
};

function squeue(): void {
  const all = locked(step);
  if (ids.length === 1 && !all.some(({ id }) => id === ids[0])) fail("slurm_load_jobs error: Invalid job id specified");
  for (const job of all.filter(chosen)) console.log(options.get("format")!.replace(/%(\w)/g, (_, letter: string) => LETTERS[letter]!(job)));
}

const FIELDS: Readonly<Record<string, (job: Job) => string>> = {
  JobIDRaw: ({ id }) => String(id),
  JobID: ({ id }) => String(id),
  State: ({ state }) => (state === "CANCELLED" ? "CANCELLED by 0" : state),
  ExitCode: ({ code = 0, signal = 0 }) => `${code}:${signal}`,
  Partition: ({ partition }) => partition,
  QOS: () => "normal",
  Account: () => "root",
  User: () => "root",
  NNodes: () => "1",
  AllocCPUS: ({ started }) => (started === undefined ? "0" : "1"),
  ReqMem: () => (old ? "1000Mn" : "1000M"),
  NodeList: ({ started }) => (started === undefined ? "None assigned" : "n01"),
  Submit: ({ submitted }) => time(submitted, "Unknown"),
  Eligible: ({ submitted }) => time(submitted, "Unknown"),
  Start: ({ started }) => time(started, "Unknown"),
  End: ({ ended }) => time(ended, "Unknown"),
  ElapsedRaw: (job) => String(Math.floor(elapsed(job) / 1_000)),
  TimelimitRaw: () => "UNLIMITED",
  JobName: ({ name }) => name,
};

function sacct(): void {
  if (!accounts) fail("Slurm accounting storage is disabled");
  for (const job of locked(step).filter(chosen)) {
    const fields = options
      .get("format")!
      .split(",")
      .map((name) => (FIELDS[name] ?? fail(`sacct: error: Invalid field requested: "${name}"`))(job));
    console.log(fields.join(options.get("delimiter")!));
  }
}

function scontrol(): void {
  if (words.join(" ") === "show config") {
    console.log(`Configuration data as of ${time(Date.now(), "")}`);
    console.log(`AccountingStorageType   = ${accounts ? "accounting_storage/slurmdbd" : old ? "accounting_storage/none" : "(null)"}`);
    console.log(
      `ClusterName             = recorded\nSelectType              = select/cons_tres\nSLURM_VERSION           = ${conf["Version"]}`,
    );
    return;
  }
  if (words.join(" ") !== "show job") fail(`invalid entity:${words[1]} for keyword:show`);
  for (const job of locked(step)) {
    const { id, name, state, partition, code = 0, signal = 0, submitted, started, ended } = job;
    console.log(
      `JobId=${id} JobName=${name} UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 Nice=0 Account=(null) QOS=(null) JobState=${state} Reason=None Dependency=(null) ` +
        `Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=${code}:${signal} RunTime=00:${two(0)}:${two(0)} TimeLimit=UNLIMITED TimeMin=N/A SubmitTime=${time(submitted, "Unknown")} ` +
        `EligibleTime=${time(submitted, "Unknown")} StartTime=${time(started, "Unknown")} EndTime=${time(ended, "Unknown")} Deadline=N/A Partition=${partition} NodeList=n01 NumNodes=1`,
    );
  }
}

function scancel(): void {
  const job = locked(step).find(({ id, name }) => id === Number(words[0]) && (!options.has("name") || options.get("name") === name));
  if (job === undefined) return;
  locked(() => {
    if (job.state === "PENDING" && !options.has("signal")) write({ ...job, state: "CANCELLED", ended: Date.now(), code: 0, signal: 0 });
    if (job.state !== "RUNNING") return;
    while (!fs.existsSync(jobFile(job.id, "pid")) || fs.readFileSync(jobFile(job.id, "pid"), "utf8") === "") Bun.sleepSync(2);
    const pid = fs.readFileSync(jobFile(job.id, "pid"), "utf8").trim();
    if (options.has("signal")) {
      process.kill(Number(pid), "SIGTERM");
      return;
    }
    fs.writeFileSync(jobFile(job.id, "canceled"), "");
    // Its children first: they hold up the shell that waits for them.
    spawnSync("pkill", ["-KILL", "-P", pid]);
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch {
      // ended with its child
    }
  });
}

const COMMANDS: Readonly<Record<string, () => void>> = { sbatch, squeue, sacct, scontrol, scancel };
COMMANDS[command]?.();
