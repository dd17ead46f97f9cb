import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { JobSubmissionInput } from "../../../../src/domain/job.ts";
import { Slurm } from "../../../rigs/slurm.ts";
import { describeWith } from "../../../runner/components.ts";
import { removeTree } from "../../../runner/remove.ts";
import { eventually } from "../../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "../harness.ts";
import type { Death } from "../mortal.ts";
import { REAL_TIMES } from "./site.ts";

const LINE = "n=$" + "{CLIO_RELAY_ATTEMPT##*/}; (set -C; : > started-$n) || : > again-$n; echo said";

describeWith("slurm", "on real SLURM", () => {
  let slurm: Slurm;
  let directory: string;
  let worker: WorkerHarness;

  /** Two nodes, and an sbatch that kills a worker when it is told whom. */
  beforeAll(async () => {
    directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-slurm-"));
    slurm = await Slurm.start({ nodes: 2 });
    fs.mkdirSync(tool(""));
    const script = [
      'said=$(/usr/bin/sbatch "$@")',
      "code=$?",
      `[ -e ${tool("victim")} ] && kill -9 $(cat ${tool("victim")})`,
      'echo "$said"; exit $code',
    ];
    fs.writeFileSync(
      tool("agent"),
      '#!/bin/sh\necho "$(cat "$1")" on "$SLURM_JOB_NODELIST" in "$SLURM_JOB_ID" | tee "$CLIO_RELAY_AGENT_OUTPUT"\n',
      {
        mode: 0o755,
      },
    );
    fs.writeFileSync(tool("sbatch"), `#!/bin/sh\n${script.join("\n")}\n`, { mode: 0o755 });
    worker = await next().start();
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await slurm?.[Symbol.asyncDispose]();
    removeTree(directory);
  });

  const tool = (name: string): string => path.join(directory, "tools", name);

  function next(death: Death | null = null): WorkerHarness {
    const variables = { ...slurm.variables, PATH: `${tool("")}:${slurm.variables["PATH"]}` };
    const scheduling = { choice: "auto", faster: 20, times: REAL_TIMES };
    const agent = { program: tool("agent"), adapter: "exec", args: ["{prompt_path}"] };
    return new WorkerHarness({ scheduling, death, agent }, directory, [
      "env",
      ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ]);
  }

  const submit = (
    line: string,
    scheduler: Record<string, unknown> = {},
    spec: Record<string, unknown> = {},
    more: Record<string, unknown> = {},
  ) => worker.submit({ argv: ["/bin/sh", "-c", line], workdir: directory, scheduler, ...spec }, more);
  const events = async (jobId: string, type: string) => (await worker.events(jobId)).filter(({ event_type }) => event_type === type);
  const event = (jobId: string, type: string) => eventually(async () => (await events(jobId, type))[0], { what: type });
  const native = async (jobId: string) => String((await event(jobId, "scheduler.job_detected")).payload?.["scheduler_job_id"]);
  const output = (jobId: string, text: string) =>
    eventually(async () => (await worker.stdout(jobId).catch(() => "")) === text, { what: JSON.stringify(text) });
  const shown = (id: string): string => slurm.run("scontrol", "-o", "show", "job", id).stdout;

  test("a job runs in its allocation of two nodes, and is followed from its submission to its end", async () => {
    const { job_id } = await submit(
      "echo $SLURM_JOB_NUM_NODES; until [ -e go ]; do sleep 0.05; done; srun -n 2 -N 2 true && echo out > result; exit 3",
      { nodes: 2, tasks: 2, name: "train", time_limit_seconds: 300 },
      { outputs: ["result"] },
    );
    await output(job_id, "2\n");
    const id = await native(job_id);
    expect(shown(id)).toContain(`JobName=train.clio-${job_id.replace("job_", "")}-1`);
    expect(shown(id)).toContain("Requeue=0");
    expect(await event(job_id, "scheduler.job_running")).toMatchObject({ payload: { nodes: "rig[1-2]" } });
    fs.writeFileSync(path.join(directory, "go"), "");
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "exit_nonzero", exit_code: 3 } });
    expect(await event(job_id, "scheduler.job_completed")).toMatchObject({
      payload: { phase: "failed", raw_state: "FAILED", exit_code: 3 },
    });
    const { artifacts } = await worker.client.artifacts(job_id);
    expect(artifacts.map(({ name }) => name)).toContain("result");
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    expect((await events(job_id, "scheduler.job_pending")).length).toBeLessThanOrEqual(1);
  });

  test("what SLURM refuses ends with its words, and without a job there", async () => {
    const { job_id } = await submit("echo ran", { partition: "nowhere" });
    const { outcome } = (await worker.ended(job_id)).job;
    expect(outcome).toMatchObject({ reason: "spawn_failed" });
    expect(outcome?.message).toContain("invalid partition");
    expect(slurm.must("squeue", "-h", "-t", "all", "-o", "%j")).not.toContain(job_id.replace("job_", ""));
  });

  test.each([
    ["before its shim is there", true],
    ["while it runs", false],
  ])("scancel from outside %s is a cancel", async (_when, held) => {
    const { job_id } = await submit("echo up; sleep 60", {}, {}, {});
    const id = await native(job_id);
    if (held) {
      // It runs at once on an empty cluster: another one waits for what there is not.
      await worker.client.cancel(job_id, { cancel_scheduler_job: true });
      const waiting = await submit("echo ran", { options: ["--begin=now+1hour"] });
      const other = await native(waiting.job_id);
      await event(waiting.job_id, "scheduler.job_pending");
      slurm.must("scancel", other);
      expect((await worker.ended(waiting.job_id)).job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
      expect((await worker.ended(job_id)).job.state).toBe("canceled");
      return;
    }
    await output(job_id, "up\n");
    slurm.must("scancel", id);
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect(job.outcome?.message).toContain("CANCELLED");
  });

  test("a job that SLURM requeues has ended; what is started again runs nothing", async () => {
    const { job_id } = await submit(`${LINE}; exec sleep 60`);
    await output(job_id, "said\n");
    const id = await native(job_id);
    slurm.must("scontrol", "update", `JobId=${id}`, "Requeue=1");
    slurm.must("scontrol", "requeue", id);
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "signaled" } });
    slurm.must("scontrol", "update", `JobId=${id}`, "StartTime=now");
    await eventually(() => shown(id).includes("JobState=COMPLETED"), { what: "the second run" });
    expect(shown(id)).toContain("Restarts=1");
    expect(fs.existsSync(path.join(directory, "again-1"))).toBe(false);
    expect(await worker.stdout(job_id)).toBe("said\n");
  });

  test("a node that goes down takes its job along", async () => {
    const { job_id } = await submit("trap '' TERM; echo up; while :; do sleep 0.05; done", { options: ["--nodelist=rig2"] });
    await output(job_id, "up\n");
    slurm.must("scontrol", "update", "NodeName=rig2", "State=DOWN", "Reason=test");
    const { job } = await worker.ended(job_id);
    expect(job.state).toBe("failed");
    expect(job.outcome?.message).toContain("NODE_FAIL");
  });

  test("a worker that comes later goes on with what waits and what runs, and ends both", async () => {
    const running = await submit("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done");
    const waiting = await submit("echo ran", { options: ["--hold"] });
    await output(running.job_id, "up\n");
    const ids = [await native(running.job_id), await native(waiting.job_id)];
    await worker.kill();
    worker = await next().start();
    expect((await events(running.job_id, "execution.adopted")).length).toBe(1);
    for (const { job_id } of [running, waiting]) await worker.client.cancel(job_id, { cancel_scheduler_job: true });
    expect((await worker.ended(running.job_id)).job.outcome).toMatchObject({ reason: "canceled", exit_code: 4 });
    expect((await worker.ended(waiting.job_id)).job).toMatchObject({ state: "canceled", attempts: 1 });
    expect(await worker.stdout(running.job_id)).toBe("up\nbye\n");
    for (const id of ids) expect(shown(id)).not.toMatch(/JobState=(?:RUNNING|PENDING)/);
  });

  test("a controller that stands still for a while costs nothing but time", async () => {
    const { job_id } = await submit("echo up; until [ -e go4 ]; do sleep 0.05; done");
    await output(job_id, "up\n");
    slurm.signal("slurmctld", "SIGSTOP");
    fs.writeFileSync(path.join(directory, "go4"), "");
    // Its shim tells.
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
    slurm.signal("slurmctld", "SIGCONT");
    await event(job_id, "scheduler.job_completed");
  });

  test.each([
    ["before the submission is on record", { when: "before", call: "recordSubmission" }],
    ["after that", { when: "after", call: "recordSubmission" }],
    ["before its start is committed", { when: "before", call: "startAttempt" }],
    ["before its end is committed", { when: "before", call: "settle" }],
    ["once SLURM has accepted, before sbatch says so", null],
  ] satisfies [string, Death | null][])("SIGKILL of the worker %s: one job of SLURM, which runs once", async (step, death) => {
    await worker.kill();
    for (const name of fs.readdirSync(directory)) if (/^(?:started|again)-/.test(name)) fs.rmSync(path.join(directory, name));
    const dying = next(death);
    const child = dying.spawn();
    worker = dying;
    if (death === null) fs.writeFileSync(tool("victim"), String(dying.pid));
    const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const once = () => submit(LINE, {}, {}, { idempotency_key: step });
    await eventually(async () => ended() || (await once()), { what: "a worker to submit to" });
    await eventually(ended, { what: "its death" });
    fs.rmSync(tool("victim"), { force: true });
    worker = await next().start();
    const { job_id } = await once();
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(fs.readdirSync(directory).filter((name) => /^(?:started|again)-/.test(name))).toEqual(["started-1"]);
    const names = slurm.must("scontrol", "-o", "show", "job").match(/JobName=\S+/g) ?? [];
    expect(names.filter((name) => name.includes(job_id.replace("job_", "")))).toHaveLength(1);
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  test("an agent runs on a node, with its prompt, and leaves its last message", async () => {
    const prompt_path = path.join(directory, "prompt.md");
    fs.writeFileSync(prompt_path, "look around");
    const submission = { cluster: "local", kind: "remote_agent", spec: { prompt_path, workdir: directory, scheduler: { nodes: 1 } } };
    const { job_id } = await worker.client.submit(submission as JobSubmissionInput);
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
    const said = await worker.stdout(job_id);
    expect(said).toMatch(new RegExp(`^look around on \\S+ in ${await native(job_id)}\n$`));
    const { artifacts } = await worker.client.artifacts(job_id, { limit: 100 });
    const last = artifacts.find(({ kind }) => kind === "agent_last_message");
    expect(await (await worker.client.artifactContent(last!.artifact_id)).text()).toBe(said);
  });
});
