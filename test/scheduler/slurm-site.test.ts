import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { SchedulerRequest, SchedulerStatus } from "../../src/domain/scheduler.ts";
import type { BatchJob, Observation } from "../../src/scheduler/provider.ts";
import { schedulerProvider } from "../../src/scheduler/schedulers.ts";
import { runSiteCommand } from "../../src/scheduler/site-command.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();

/** Prints a row of squeue's: number, state, reason, name, in the format that it was asked for. */
const ROW = `row() {
  for word; do case $word in --format=*) format=\${word#--format=};; esac; done
  printf '%s\\n' "$format" | sed "s/%A/$1/;s/%i/$2/;s/%T/$3/;s/%r/$4/;s/%j/$5/;s/%V/2025-03-01T10:00:00/;s/%[a-zA-Z]/(null)/g"
}
`;
/** The same of sacct: number, state, exit code, name. */
const RECORD = `record() {
  for word; do case $word in --delimiter=*) d=\${word#--delimiter=};; esac; done
  printf '%s' "$1$d$1$d$2$d$3"; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do printf '%s' "$d"; done; printf '%s\\n' "$d$4"
}
`;
const CONFIG = `if [ "$1 $2" = "show config" ]; then printf 'AccountingStorageType = accounting_storage/slurmdbd\\nSLURM_VERSION = 23.11.1\\nSelectType = select/linear\\n'; exit; fi
`;

/** A site whose commands are shell scripts; each leaves a line of `calls` with its arguments. */
function site(commands: Readonly<Record<string, string>>, deadlineMs?: number) {
  const place = directory();
  for (const [name, script] of Object.entries(commands)) {
    const log = `echo ${name} "$@" >>'${place}/calls'\n`;
    fs.writeFileSync(path.join(place, name), `#!/bin/sh\n${ROW}${RECORD}${log}${name === "scontrol" ? CONFIG : ""}${script}\n`, {
      mode: 0o755,
    });
  }
  for (const name of ["sh", "sed", "cat", "sleep"]) fs.symlinkSync(Bun.which(name)!, path.join(place, name));
  const provider = schedulerProvider("slurm", {
    variables: { PATH: place },
    run: (command) => runSiteCommand({ ...command, deadlineMs: deadlineMs ?? command.deadlineMs }),
  });
  const calls = (name: string): string[] => {
    const lines = fs.existsSync(path.join(place, "calls")) ? fs.readFileSync(path.join(place, "calls"), "utf8").trim().split("\n") : [];
    return lines.filter((line) => line.startsWith(`${name} `));
  };
  return { provider, place, calls };
}

const job = (place: string, given: v.InferInput<typeof SchedulerRequest> = {}): BatchJob => ({
  request: v.parse(SchedulerRequest, given),
  marker: "clio-00-1",
  script: path.join(place, "batch.sh"),
  output: path.join(place, "log"),
  workdir: place,
});
const native = (id: string, cluster: string | null = null) => ({ id, cluster });
const of = ({ statuses }: Observation, key: string): SchedulerStatus => v.parse(SchedulerStatus, statuses.get(key));

describe("submission", () => {
  test("sbatch that hangs, or is killed after the job was taken, leaves a doubt, and the marker settles it", async () => {
    const squeue = "row 4711 4711 PENDING None clio-00-1";
    for (const sbatch of ["echo 4711; sleep 300", "echo 4711 >&2; kill -KILL $$"]) {
      const { provider, place, calls } = site({ sbatch, squeue: `${squeue} "$@"`, sacct: "exit 0", scontrol: "exit 1" }, 1_000);
      expect((await provider.submit(job(place))).kind).toBe("doubt");
      expect(await provider.find("clio-00-1")).toEqual({ found: [native("4711")], complete: true, reached: true, said: null });
      expect(calls("sbatch").length).toBe(1);
    }
  });

  test("a marker is looked for from a day before it was made: clocks differ", async () => {
    const { provider, calls } = site({ squeue: "exit 0", sacct: "exit 0", scontrol: "exit 1" });
    expect(await provider.find("clio-00-1", { since: Date.UTC(2025, 2, 2, 12, 30) })).toMatchObject({ found: [], complete: true });
    expect(calls("sacct")[0]).toContain("--starttime=2025-03-01T12:30:00");
  });

  test("warnings before and behind the id, and another cluster than the usual one", async () => {
    const { provider, place } = site({
      sbatch: "echo 'Welcome to 2025'; echo '2 hours left' >&2; echo '4711;beta'; echo bye",
      squeue: "",
      scontrol: "exit 1",
    });
    expect(await provider.submit(job(place))).toMatchObject({ kind: "accepted", native: native("4711", "beta") });
  });

  test("GPUs are asked for per node where this SLURM knows them only so", async () => {
    const { provider, place, calls } = site({ sbatch: "echo 4711", squeue: "", scontrol: "exit 1" });
    await provider.submit(job(place, { gpus: 4, nodes: 2 }));
    expect(calls("sbatch")[0]).toContain("--gres=gpu:2");
  });
});

describe("observation", () => {
  test("a login node where only squeue is", async () => {
    const { provider, place } = site({
      squeue:
        'case $* in --version) echo slurm 20.11.9; exit;; *--name=clio-00-1*) ;; *--name*) exit;; esac\nrow 7 7 RUNNING None clio-00-1 "$@"',
    });
    expect(await provider.probe()).toEqual({
      version: "20.11.9",
      submits: false,
      clusterName: null,
      accounting: false,
      sources: ["squeue"],
    });
    const seen = await provider.observe([native("7"), native("8")]);
    expect(of(seen, "7")).toMatchObject({ phase: "running", active_record_found: true });
    expect(of(seen, "8")).toMatchObject({ phase: "unknown", record_found: false });
    expect(await provider.find("clio-00-1")).toMatchObject({ found: [native("7")], complete: true });
    expect((await provider.submit(job(place))).kind).toBe("refused");
    expect((await provider.cancel(native("7"), "clio-00-1")).kind).toBe("refused");
  });

  test("one where only scontrol is", async () => {
    const record = (name: string, state: string): string =>
      `echo 'JobId=7 JobName=${name} UserId=a(1) JobState=${state} Reason=None ExitCode=3:0'`;
    const { provider } = site({
      scontrol: `${record("clio-00-1", "FAILED")}; ${record("other", "RUNNING").replace("JobId=7", "JobId=9")}`,
    });
    const seen = await provider.observe([native("7"), native("8"), native("9")]);
    expect(of(seen, "7")).toMatchObject({ phase: "failed", exit_code: 3, active_record_found: false });
    expect(of(seen, "8").record_found).toBe(false);
    expect(of(seen, "9")).toMatchObject({ phase: "running", active_record_found: true });
    expect((await provider.find("clio-00-1")).found).toEqual([native("7")]);
  });

  test("each source once for many, in lists of 1,000; accounts only for what is not active", async () => {
    const { provider, calls } = site({ squeue: 'row 5 5 RUNNING None x "$@"', sacct: 'record 6 COMPLETED 0:0 y "$@"', scontrol: "exit 1" });
    const jobs = Array.from({ length: 1_500 }, (_, index) => native(String(index + 1)));
    const seen = await provider.observe(jobs);
    expect([calls("squeue").length, calls("sacct").length]).toEqual([2, 2]);
    expect(calls("sacct")[0]).not.toMatch(/--jobs=(?:\S*,)?5,/);
    expect([of(seen, "5").phase, of(seen, "6").phase, of(seen, "7").record_found]).toEqual(["running", "completed", false]);
    await provider.observe([native("5")]);
    expect([calls("squeue").length, calls("sacct").length]).toEqual([3, 2]);
    await provider.observe(jobs, { positions: true });
    expect(calls("squeue").length).toBe(4);
    expect(calls("squeue")[3]).not.toContain("--jobs");
  });

  test("more jobs than can be listed: places are given up, and not what is ours", async () => {
    const squeue =
      'case $* in *--jobs*) row 5 5 PENDING None x "$@";; *) yes 0123456789012345678901234567890123456789 | head -c 9000000;; esac';
    const { provider, place, calls } = site({ squeue, sacct: "exit 0", scontrol: "exit 1" });
    for (const name of ["yes", "head"]) fs.symlinkSync(Bun.which(name)!, path.join(place, name));
    for (const times of [2, 3]) {
      const seen = await provider.observe([native("5")], { positions: true });
      expect(of(seen, "5")).toMatchObject({ phase: "pending", queue_position: null });
      expect(seen.failures.size).toBe(0);
      expect(calls("squeue").length).toBe(times);
    }
  });

  test("accounts that are late are not believed against the controller, and never heard of an end are unknown", async () => {
    const { provider } = site({
      squeue: 'row 5 5 TIMEOUT TimeLimit clio-00-1 "$@"',
      sacct: 'record 5 RUNNING 0:0 allocation "$@"; record 6 RUNNING 0:0 y "$@"',
      scontrol: "exit 1",
    });
    const seen = await provider.observe([native("5"), native("6")]);
    expect(of(seen, "5")).toMatchObject({ phase: "failed", raw_state: "TIMEOUT", reason: "TimeLimit", name: "clio-00-1", exit_code: null });
    expect(of(seen, "6")).toMatchObject({ phase: "unknown", raw_state: "RUNNING", record_found: true, active_record_found: false });
  });

  test("what only accounts know has ended as they say: memory, node, preemption, deadline, a cancel from outside", async () => {
    const states = ["OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE", "CANCELLED by 1000", "BOOT_FAIL", "SOMETHING_NEW"];
    const sacct = states.map((state, index) => `record ${index + 1} '${state}' 0:9 x "$@"`).join("\n");
    const { provider } = site({ squeue: "exit 0", sacct, scontrol: "exit 1" });
    const seen = await provider.observe(states.map((_, index) => native(String(index + 1))));
    expect(states.map((_, index) => of(seen, String(index + 1)).phase)).toEqual([
      "failed",
      "failed",
      "failed",
      "failed",
      "canceled",
      "failed",
      "unknown",
    ]);
    expect(of(seen, "7")).toMatchObject({ raw_state: "SOMETHING_NEW", record_found: true });
    expect(of(seen, "1")).toMatchObject({ exit_code: 0, signal: 9 });
  });

  test("a federation's other cluster has taken the job: no end; what else is known of it counts", async () => {
    const revoked = 'row 5 5 REVOKED None x "$@"';
    const alone = site({ squeue: revoked, sacct: "exit 0", scontrol: "exit 1" }).provider;
    expect(of(await alone.observe([native("5")]), "5")).toMatchObject({ phase: "unknown", raw_state: "REVOKED", record_found: true });
    const both = site({ squeue: `${revoked}; row 5 5 RUNNING None x "$@"`, sacct: "exit 0", scontrol: "exit 1" }).provider;
    expect(of(await both.observe([native("5")]), "5").phase).toBe("running");
    const ended = site({ squeue: revoked, sacct: 'record 5 COMPLETED 0:0 x "$@"', scontrol: "exit 1" }).provider;
    expect(of(await ended.observe([native("5")]), "5")).toMatchObject({ phase: "completed", exit_code: 0 });
  });

  test("one number on two clusters is two jobs", async () => {
    const squeue = 'case $* in *--clusters=alpha*) row 5 5 RUNNING None a "$@";; *--clusters=beta*) row 5 5 PENDING None b "$@";; esac';
    const { provider } = site({ squeue, sacct: "exit 0", scontrol: "exit 1" });
    const seen = await provider.observe([native("5", "alpha"), native("5", "beta")]);
    expect([of(seen, "5;alpha"), of(seen, "5;beta")].map(({ phase, cluster }) => [phase, cluster])).toEqual([
      ["running", "alpha"],
      ["pending", "beta"],
    ]);
  });

  test("a source that refuses, hangs, floods or speaks another language is no answer", async () => {
    const broken = [
      "exit 1",
      "sleep 300",
      "while :; do echo 0123456789012345678901234567890123456789; done",
      'for w; do case $w in --format=*) f=${w#--format=%A};; esac; done; echo "5${f%%%i*}x"',
    ];
    for (const squeue of broken) {
      const { provider } = site({ squeue, sacct: "exit 0", scontrol: "exit 1" }, 400);
      const { statuses, failures } = await provider.observe([native("5")]);
      expect([statuses.size, [...failures.keys()]]).toEqual([0, ["squeue"]]);
      expect(await provider.find("clio-00-1")).toMatchObject({ found: [], complete: false });
      expect((await provider.cancel(native("5"), "clio-00-1")).kind).toBe("doubt");
    }
  });

  test("accounts that refuse leave what the controller says", async () => {
    const { provider } = site({
      squeue: 'row 5 5 FAILED NonZeroExitCode x "$@"',
      sacct: "echo 'sacct: error: Problem talking to the database' >&2; exit 1",
      scontrol: "echo 'JobId=5 JobName=x UserId=a(1) JobState=FAILED Reason=NonZeroExitCode ExitCode=7:0'",
    });
    const seen = await provider.observe([native("5"), native("6")]);
    expect(of(seen, "5")).toMatchObject({ phase: "failed", exit_code: 7 });
    expect(seen.statuses.has("6")).toBe(false);
    expect(seen.failures.get("sacct")).toContain("Problem talking");
  });
});

describe("ending", () => {
  test("nothing is sent where the number has another name, has ended, or is not there", async () => {
    const { provider, calls } = site({
      squeue: 'row 5 5 RUNNING None other "$@"; row 6 6 COMPLETED None clio-00-1 "$@"',
      scancel: "exit 0",
      scontrol: "exit 1",
    });
    for (const id of ["5", "6", "7"]) {
      expect((await provider.cancel(native(id), "clio-00-1")).kind).toBe("refused");
      expect((await provider.terminate(native(id), "clio-00-1")).kind).toBe("refused");
    }
    expect(calls("scancel")).toEqual([]);
  });

  test("exactly the job is named, with its name", async () => {
    const { provider, calls } = site({
      squeue: 'row 5 5 RUNNING None clio-00-1 "$@"',
      scancel: "case $* in *--signal*) echo denied >&2; exit 1;; esac",
      scontrol: "exit 1",
    });
    expect(await provider.cancel(native("5", "beta"), "clio-00-1")).toEqual({ kind: "asked", said: "" });
    expect(await provider.terminate(native("5"), "clio-00-1")).toEqual({ kind: "refused", said: "ended with 1: denied" });
    expect(calls("scancel")).toEqual(["scancel --clusters=beta --name=clio-00-1 5", "scancel --name=clio-00-1 --batch --signal=TERM 5"]);
  });
});
