import { describe, expect, test } from "bun:test";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { runCli } from "../../../src/cli/main.ts";
import { observedLines, overtaken, phaseText, schedulerText } from "../../../src/cli/print/scheduler-text.ts";
import type { SchedulerStatus } from "../../../src/domain/scheduler.ts";
import type { JobScheduler } from "../../../src/domain/views.ts";
import { capturedIo } from "../captured-io.ts";
import { initialized, withWorker } from "../source-relay.ts";

test("which scheduler a cluster has stays until another is said, and reaches the worker's host", async () => {
  await using relay = await initialized();
  const far = ["cluster", "add", "--name", "far", "--ssh-host", "nowhere.invalid"];
  expect(await relay.json(...far)).not.toHaveProperty("scheduler_provider");
  expect(await relay.json(...far, "--scheduler-provider", "gridengine")).toMatchObject({ scheduler_provider: "gridengine" });
  expect(await relay.json(...far, "--worker-concurrency", "4")).toMatchObject({ scheduler_provider: "gridengine" });
  expect(await relay.ok("cluster", "show", "far")).toMatch(/^scheduler +gridengine$/m);
  const configuration = {
    schema_version: "clio-relay.worker-configuration.v1",
    cluster: "site",
    env_setup: null,
    worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
    client_keys: [],
  };
  for (const [said, kept] of [
    [{ scheduler_provider: "auto" }, "auto"],
    [{}, undefined],
  ] as const) {
    const { code } = await relay.run(["worker", "configure"], { stdin: JSON.stringify({ ...configuration, ...said }) });
    const { scheduler_provider } = await relay.json<{ scheduler_provider?: string }>("cluster", "show", "site");
    expect([code, scheduler_provider]).toEqual([0, kept]);
  }
});

describe("a submission that asks for a scheduler", () => {
  test("is refused by a worker that has none, and says so before anything runs", async () => {
    await using relay = await withWorker();
    const refused = await relay.run(["job", "submit", "--scheduler", "slurm", "--", "true"]);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("[scheduler_unavailable]");
    expect(refused.stderr).toContain("hint: clio-relay cluster add --name local --scheduler-provider");
    expect((await relay.json<{ jobs: unknown[] }>("job", "list")).jobs).toEqual([]);
    const status = await relay.run(["scheduler", "status", "12345"]);
    expect([status.code, status.stderr]).toEqual([1, expect.stringContaining("[scheduler_unavailable]")]);
    const cancel = await relay.run(["scheduler", "cancel", "12345", "--provider", "slurm"]);
    expect([cancel.code, cancel.stderr]).toEqual([4, expect.stringContaining("no job of this queue is 12345 of slurm")]);
    for (const [words, said] of USAGE) {
      const io = capturedIo({ variables: relay.environment, cwd: relay.directory });
      expect([words, await runCli(["job", "submit", ...words], io), io.stderr.text]).toEqual([words, 2, expect.stringContaining(said)]);
    }
    for (const id of ["-f", "a b", "x".repeat(129)]) {
      const io = capturedIo({ variables: relay.environment, cwd: relay.directory });
      expect([id, await runCli(["scheduler", "status", id], io)]).toEqual([id, 2]);
    }
  });

  test("says what it asks for, and nothing else", async () => {
    const { verb } = await COMMANDS["job"]!["submit"]!.load();
    expect(Object.keys(verb.flags)).toContain("scheduler");
    const { requestOf } = await import("../../../src/cli/job/scheduler-options.ts");
    const none = Object.fromEntries(
      Object.entries(verb.flags).map(([name, flag]) => [name, flag.kind === "switch" ? false : flag.kind === "list" ? [] : undefined]),
    ) as never as Parameters<typeof requestOf>[0];
    expect(requestOf(none)).toBeUndefined();
    expect(requestOf({ ...none, scheduler: "auto" })).toEqual({});
    expect(requestOf({ ...none, sbatch: "job.sbatch", scheduler: "auto" })).toEqual({ provider: "slurm", directives: true });
    expect(requestOf({ ...none, qsub: "job.sh", partition: "all.q" })).toEqual({
      provider: "gridengine",
      partition: "all.q",
      directives: true,
    });
    const all = { ...none, scheduler: "slurm", nodes: 2, ntasks: 8, gpus: 4, mem: 2 ** 32, time: 3_600, exclusive: true } as const;
    expect(requestOf({ ...all, "job-name": "train", "scheduler-option": ["--mail-type=END"] })).toEqual({
      provider: "slurm",
      nodes: 2,
      tasks: 8,
      gpus: 4,
      memory_bytes: 2 ** 32,
      time_limit_seconds: 3_600,
      exclusive: true,
      name: "train",
      options: ["--mail-type=END"],
    });
  });
});

/** Command lines that are not understood, and what is said of them. */
const USAGE: readonly (readonly [words: readonly string[], said: string])[] = [
  [["--scheduler", "slurm", "--timeout", "1h", "--", "true"], "--time 01:00:00"],
  [["--nodes", "2", "--", "true"], "--scheduler auto"],
  [["--exclusive", "--", "true"], "--exclusive is for work that a scheduler runs"],
  [["--scheduler-option=--mail-type=END", "--", "true"], "--scheduler-option is for work that a scheduler runs"],
  [["--scheduler", "pbs", "--", "true"], "slurm, gridengine, auto"],
  [["--scheduler", "slurm", "--time", "1:2:3:4", "--", "true"], "[DAYS-]HH:MM:SS"],
  [["--scheduler", "slurm", "--time", "0", "--", "true"], "[DAYS-]HH:MM:SS"],
  [["--scheduler", "slurm", "--mem", "4GB", "--", "true"], "4G, 512M"],
  [["--scheduler", "slurm", "--partition", "a b", "--", "true"], "one word"],
  [["--scheduler", "slurm", "--job-name", "$(id)", "--", "true"], "begins with a letter"],
  [["--scheduler", "slurm", "--scheduler-option=rm", "--", "true"], "an option of sbatch or qsub"],
  [["--scheduler", "slurm", "--nodes", "0", "--", "true"], "1 to 1000000"],
  [["--scheduler", "gridengine", "--sbatch", "job.sbatch"], "--sbatch is for slurm"],
  [["--sbatch", "job.sbatch", "--", "true"], "a script gets no arguments"],
  [["--sbatch", "a", "--qsub", "b"], "--sbatch and --qsub exclude each other"],
];

test("what a scheduler said a while ago is told as that, and time goes on", () => {
  const status: SchedulerStatus = {
    ...{
      scheduler: "slurm" as const,
      scheduler_job_id: "7",
      cluster: null,
      phase: "running" as const,
      raw_state: "RUNNING",
      reason: "None",
      name: null,
    },
    ...{
      record_found: true,
      active_record_found: true,
      partition: "debug",
      qos: "normal",
      account: null,
      user: null,
      nodes: "n[1-2]",
      cpus: 8,
    },
    ...{ memory: "4G", exit_code: null, signal: null, submit_time: null, eligible_time: null, end_time: null, elapsed_seconds: 1 },
    ...{ start_time: "2030-01-01T00:00:00.000Z", time_limit_seconds: 3_600, observed_at: "2030-01-01T00:00:01.000Z" },
    ...{ queue_position: null, jobs_ahead: null, queue_position_scope: null, queue_position_note: null },
  };
  const lines = (more: Partial<SchedulerStatus> = {}) =>
    Object.fromEntries(observedLines({ ...status, ...more }, Date.parse("2030-01-01T00:00:31.000Z")).filter(([, text]) => text !== null));
  expect(lines()).toEqual({
    nodes: "n[1-2]",
    "asked for": "8 CPUs, 4G",
    partition: "debug, normal",
    "time limit": "00:00:31 of 01:00:00",
    "last news": "30s ago",
  });
  expect(lines({ cpus: 1 })).toMatchObject({ "asked for": "1 CPU, 4G" });
  expect(phaseText(status)).toBe("running (RUNNING)");
  expect(lines({ phase: "failed", exit_code: 0, signal: 9 })).toMatchObject({
    "time limit": "00:00:01 of 01:00:00",
    "batch script": "exit code 0, signal 9",
  });
  const waits = { phase: "pending", queue_position: 3, queue_position_scope: "partition debug", start_time: null, nodes: null } as const;
  expect(lines(waits)).toMatchObject({ "place in its queue": "about 3 in partition debug", "time limit": "01:00:00" });
});

test("what an attempt has at a scheduler is one line, whatever is known of it", () => {
  const record = {
    job_id: "job_1",
    attempt: 1,
    task_id: "task_1",
    task_name: "slurm, attempt 1",
    provider: "slurm",
    marker: "clio-1-1",
    submission: "intended",
    native_id: null,
    scheduler_cluster: null,
    status: null,
    intended_at: "",
    submitted_at: null,
    observed_at: null,
    ended_at: null,
    retained: false,
  } as const;
  expect(schedulerText(record)).toBe("slurm: being submitted");
  expect(schedulerText({ ...record, submission: "unresolved" })).toBe(
    "slurm: whether it has the job is not known; it is looked for as clio-1-1",
  );
  expect(schedulerText({ ...record, submission: "refused" })).toBe("slurm: refused");
  const there = { ...record, submission: "submitted", native_id: "7", scheduler_cluster: "ridge" } as const;
  expect(schedulerText(there)).toBe("slurm 7 on ridge: submitted");
  expect(schedulerText({ ...there, retained: true })).toEndWith("; it was left to go on");
});

test("what the scheduler said of a job before that began, or ended, is told as that", () => {
  const said = { phase: "pending", raw_state: "PENDING", reason: "None", observed_at: "2030-01-01T00:00:05.000Z" } as SchedulerStatus;
  const there = {
    ...{ provider: "slurm", native_id: "7", scheduler_cluster: null, submission: "submitted", retained: false, ended_at: null },
    status: said,
  } as JobScheduler;
  const running = { ...there, status: { ...said, phase: "running", raw_state: "RUNNING" } } as const;
  const before = "2030-01-01T00:00:04.000Z";
  const after = "2030-01-01T00:00:06.000Z";
  const ran = (started_at: string | null, ended_at: string | null = null) => ({ started_at, ended_at });
  expect([ran(null), ran(before), ran(after), ran(null, after)].map((times) => overtaken(there, times))).toEqual([
    false,
    false,
    true,
    true,
  ]);
  expect([ran(after), ran(before, before), ran(before, after)].map((times) => overtaken(running, times))).toEqual([false, false, true]);
  expect(overtaken({ ...running, retained: true }, ran(before, after))).toBe(false);
  expect(overtaken({ ...there, ended_at: before }, ran(before, after))).toBe(false);
  expect(overtaken({ ...there, status: null }, ran(after))).toBe(false);
  expect(schedulerText(there)).toBe("slurm 7: pending (PENDING)");
  expect(schedulerText(there, ran(before))).toBe("slurm 7: pending (PENDING)");
  expect(schedulerText(there, ran(after))).toBe("slurm 7: was pending (PENDING) when it was last asked");
  expect(schedulerText(running, ran(before, after))).toBe("slurm 7: was running (RUNNING) when it was last asked");
});
