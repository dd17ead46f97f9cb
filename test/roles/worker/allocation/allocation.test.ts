import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "../harness.ts";
import { Site, TIMES } from "./site.ts";

let site: Site;
beforeAll(async () => {
  // A shell that is told to end does it in this time on a busy machine, too.
  site = await new Site({ limits: { cancelGraceSeconds: 5 } }).start();
});
afterAll(() => site[Symbol.asyncDispose]());

const native = async (jobId: string): Promise<string> =>
  eventually(async () => (await site.events(jobId, "scheduler.job_detected"))[0]?.payload?.["scheduler_job_id"] as string | undefined, {
    what: "its id at the scheduler",
  });

describe("a job in an allocation", () => {
  test("runs once, is followed while it runs, and leaves what every job leaves", async () => {
    const { job_id } = await site.submit("echo one; until [ -e go ]; do sleep 0.05; done; echo $SLURM_JOB_ID; echo out > result", {
      outputs: ["result"],
    });
    const running = await site.worker.running(job_id);
    expect(running.attempt?.shim).not.toBeNull();
    await eventually(async () => (await site.worker.stdout(job_id)) === "one\n", { what: "what it wrote first" });
    fs.writeFileSync(path.join(site.directory, "go"), "");
    const { job } = await site.worker.ended(job_id);
    const id = await native(job_id);
    expect(job).toMatchObject({ state: "succeeded", lane: "scheduler", outcome: { reason: "completed", exit_code: 0 } });
    expect(await site.worker.stdout(job_id)).toBe(`one\n${id}\n`);
    expect(historyFaults(await site.worker.events(job_id))).toEqual([]);
    const { artifacts } = await site.worker.client.artifacts(job_id);
    expect(artifacts.map(({ name }) => name).sort()).toEqual(["log-capture.json", "provenance.json", "result", "stderr.log", "stdout.log"]);
    expect(site.scheduler.asked().filter((line) => line.startsWith("submit"))).toHaveLength(1);
    // The scheduler's own word comes later.
    await eventually(async () => (await site.events(job_id, "scheduler.job_completed")).length === 1, {
      what: "the scheduler's word on its end",
    });
  });

  test("that fails ends with its code, which the scheduler knows, too", async () => {
    const { job_id } = await site.submit("exit 3");
    expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
    const done = await eventually(async () => (await site.events(job_id, "scheduler.job_completed"))[0], { what: "the scheduler's word" });
    expect(done.payload).toMatchObject({ phase: "failed", raw_state: "FAILED" });
  });

  test("that the scheduler refuses has its words for an outcome, and was looked up before that is believed", async () => {
    site.scheduler.behave({ submit: "refuses" });
    const { job_id } = await site.submit("echo ran");
    const { job } = await site.worker.ended(job_id);
    site.scheduler.behave({ submit: "accepts" });
    expect(job.outcome).toMatchObject({ reason: "spawn_failed", message: "slurm refused it: no such partition" });
    const marker = `clio-${job_id.replace("job_", "")}-1`;
    expect(site.scheduler.asked().filter((line) => line.endsWith(marker))).toEqual([
      `submit ${marker}`,
      `find ${marker}`,
      `find ${marker}`,
    ]);
  });

  test("that a scheduler refuses which does not answer is submitted again when it does, however long that takes", async () => {
    site.scheduler.behave({ submit: "refuses", silent: true });
    const { job_id } = await site.submit("echo ran");
    const marker = `clio-${job_id.replace("job_", "")}`;
    const asked = (what: string) => site.scheduler.asked().filter((line) => line.startsWith(`${what} ${marker}`));
    await eventually(async () => (await site.worker.client.status(job_id)).obstacle?.includes("slurm does not answer"), {
      what: "the obstacle",
    });
    // Longer than a refusal is looked up where only accounts do not answer.
    await eventually(() => asked("find").length >= 3, { what: "three looks" });
    expect((await site.worker.client.status(job_id)).job.state).toBe("leased");
    site.scheduler.behave({ submit: "accepts", silent: false });
    expect((await site.worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 2 });
    expect(asked("submit")).toEqual([`submit ${marker}-1`, `submit ${marker}-2`]);
    expect((await site.events(job_id, "job.requeued")).map(({ payload }) => payload?.["reason"])).toEqual([
      "slurm did not answer: no such partition",
    ]);
    expect(historyFaults(await site.worker.events(job_id))).toEqual([]);
  });

  test.each(["lost", "refuses-though-accepted"] as const)(
    "whose submission was %s is found by its marker, and submitted once",
    async (submit) => {
      site.scheduler.behave({ submit });
      const { job_id } = await site.submit("echo ran");
      const { job } = await site.worker.ended(job_id);
      site.scheduler.behave({ submit: "accepts" });
      expect(job.outcome).toMatchObject({ reason: "completed" });
      const marker = `clio-${job_id.replace("job_", "")}-1`;
      expect(site.scheduler.jobs().filter((one) => one.marker === marker)).toHaveLength(1);
    },
  );

  test("of which nobody knows whether the scheduler has it says so once, and ends by a cancel, naming what may be left", async () => {
    site.scheduler.behave({ submit: "vanishes" });
    const { job_id } = await site.submit("echo ran");
    const marker = `clio-${job_id.replace("job_", "")}-1`;
    await eventually(async () => (await site.worker.client.status(job_id)).obstacle?.includes(marker), { what: "the obstacle" });
    await eventually(() => site.scheduler.asked().filter((line) => line === `find ${marker}`).length > 1, { what: "two looks" });
    site.scheduler.behave({ submit: "accepts" });
    expect(await site.events(job_id, "scheduler.reconciliation_unresolved")).toHaveLength(1);
    await site.worker.client.cancel(job_id);
    const { job } = await site.worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect(job.outcome?.message).toContain(marker);
  });

  test("whose name several jobs have stays unresolved until its shim says which it is", async () => {
    site.scheduler.behave({ submit: "lost", holds: true, silent: true });
    const { job_id } = await site.submit("echo ran");
    const mine = await eventually(() => site.scheduler.jobs().find(({ marker }) => marker.includes(job_id.replace("job_", ""))), {
      what: "the job",
    });
    site.scheduler.double(mine.id);
    site.scheduler.behave({ submit: "accepts", silent: false, holds: false });
    await eventually(async () => (await site.worker.client.status(job_id)).obstacle?.includes("2 jobs"), { what: "the obstacle" });
    site.scheduler.say(mine.id, null);
    site.scheduler.run(mine.id);
    expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
    expect((await site.events(job_id, "scheduler.job_detected"))[0]?.payload).toMatchObject({
      scheduler_job_id: mine.id,
      reconciled: true,
    });
  });
});

describe("an allocation that ends by itself", () => {
  test("before the shim has claimed: nothing ran, and the batch script's words are in the outcome", async () => {
    site.scheduler.behave({ holds: true });
    const { job_id } = await site.submit("echo ran");
    const id = await native(job_id);
    site.scheduler.behave({ holds: false });
    fs.writeFileSync(path.join(site.worker.attemptDir(job_id), "scheduler.log"), "clio-relay: the executable cannot be executed on n1\n");
    site.scheduler.say(id, { phase: "failed", raw_state: "FAILED", exit_code: 78 });
    const { job } = await site.worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "spawn_failed" });
    expect(job.outcome?.message).toContain(
      `slurm says of ${id}: FAILED on n1, exit code 78; its script said: clio-relay: the executable cannot be executed on n1`,
    );
    // A requeue comes too late.
    site.scheduler.run(id);
    await eventually(() => fs.existsSync(path.join(site.scheduler.directory, `${id}.code`)), { what: "the end of the second run" });
    expect(fs.readFileSync(path.join(site.scheduler.directory, `${id}.code`), "utf8")).toBe("0\n");
    expect(await site.worker.stdout(job_id).catch(() => "")).toBe("");
  });

  test("before the shim has claimed, without a word why: nothing ran, and nobody waits for records of it", async () => {
    await using patient = new Site();
    const times = { ...TIMES, lag: 600_000 };
    patient.worker = new WorkerHarness({ scheduling: { choice: "slurm", fake: patient.scheduler.directory, times } }, patient.directory);
    await patient.start();
    patient.scheduler.behave({ holds: true });
    const { job_id } = await patient.submit("echo ran");
    const { id } = await eventually(() => patient.scheduler.jobs()[0], { what: "the job" });
    patient.scheduler.say(id, { phase: "failed", raw_state: "BOOT_FAIL" });
    const { job } = await patient.worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "spawn_failed", message: expect.stringContaining("BOOT_FAIL") });
    // A requeue comes too late.
    patient.scheduler.run(id);
    await eventually(() => fs.existsSync(path.join(patient.scheduler.directory, `${id}.code`)), { what: "the end of the second run" });
    expect(await patient.worker.stdout(job_id).catch(() => "")).toBe("");
  });

  test.each([
    ["TIMEOUT", "failed", "timeout", "failed"],
    ["CANCELLED by 1000", "canceled", "canceled", "canceled"],
    ["NODE_FAIL", "failed", "outcome_unknown", "failed"],
  ] as const)("with its shim killed, as %s: %s, %s", async (raw_state, phase, reason, state) => {
    const { job_id } = await site.submit("echo up; sleep 60");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    // As slurmstepd does where it knows more than a state says.
    fs.appendFileSync(path.join(site.worker.attemptDir(job_id), "scheduler.log"), "error: exceeded memory limit\n");
    site.scheduler.signal(id, "SIGKILL");
    site.scheduler.say(id, { phase, raw_state });
    const { job } = await site.worker.ended(job_id);
    expect(job).toMatchObject({ state, outcome: { reason } });
    expect(job.outcome?.message).toContain(raw_state);
    if (reason === "outcome_unknown") expect(job.outcome?.message).toContain("exceeded memory limit");
    expect(await site.worker.stdout(job_id)).toBe("up\n");
  });

  test.each([
    ["TIMEOUT", "failed", "timeout"],
    ["CANCELLED by 1000", "canceled", "canceled"],
    ["OUT_OF_MEMORY", "failed", "signaled"],
    ["PREEMPTED", "failed", "signaled"],
  ] as const)("with TERM to its shim, as %s: its record with the scheduler's word on it", async (raw_state, phase, reason) => {
    const { job_id } = await site.submit("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    site.scheduler.say(id, { phase, raw_state });
    site.scheduler.signal(id, "SIGTERM");
    const { job } = await site.worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason, exit_code: 4 });
    expect(job.outcome?.message).toContain(raw_state);
    expect(await site.worker.stdout(job_id)).toBe("up\nbye\n");
  });

  test.each([
    ["TIMEOUT", "failed", "timeout"],
    ["CANCELLED by 1000", "canceled", "canceled"],
    ["PREEMPTED", "failed", "signaled"],
    ["COMPLETED", "completed", "completed"],
  ] as const)(
    "with TERM to all of its processes, as %s, is what the scheduler says although the job ends well",
    async (raw_state, phase, reason) => {
      const { job_id } = await site.submit("trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done");
      await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
      const id = await native(job_id);
      const { attempt } = await site.worker.client.status(job_id);
      const job = attempt!.process!.pid;
      site.scheduler.say(id, { phase, raw_state });
      // Its shim learns of both at once.
      site.scheduler.signal(id, "SIGSTOP");
      process.kill(job, "SIGTERM");
      await eventually(() => /^State:\s+Z/m.test(fs.readFileSync(`/proc/${job}/status`, "utf8")), { what: "the end of the job" });
      site.scheduler.signal(id, "SIGTERM");
      site.scheduler.signal(id, "SIGCONT");
      const { outcome } = (await site.worker.ended(job_id)).job;
      expect(outcome).toMatchObject({ reason, exit_code: 0 });
      if (reason !== "completed") expect(outcome?.message).toContain(raw_state);
    },
  );

  test("with its shim killed: its record is waited for, and that is said", async () => {
    await using patient = new Site();
    const times = { ...TIMES, lag: 600_000 };
    patient.worker = new WorkerHarness({ scheduling: { choice: "slurm", fake: patient.scheduler.directory, times } }, patient.directory);
    await patient.start();
    const { job_id } = await patient.submit("echo up; sleep 15");
    await eventually(async () => (await patient.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const { id } = patient.scheduler.jobs()[0]!;
    patient.scheduler.signal(id, "SIGKILL");
    const obstacle = async () => (await patient.worker.client.status(job_id)).obstacle;
    const said = `slurm says of ${id}: FAILED on n1; the record of its shim is waited for`;
    await eventually(async () => (await obstacle()) === said, { what: said });
    expect((await patient.worker.client.status(job_id)).job.state).toBe("running");
  });

  test("is no end while no source says so: an id that is nowhere is unknown, and the shim tells", async () => {
    const { job_id } = await site.submit("until [ -e go2 ]; do sleep 0.05; done; echo done");
    await site.worker.running(job_id);
    const id = await native(job_id);
    await eventually(async () => (await site.events(job_id, "scheduler.job_running")).length === 1, { what: "that it is seen to run" });
    site.scheduler.forget(id);
    await eventually(async () => (await site.events(job_id, "scheduler.job_unknown")).length === 1, { what: "that it is unknown" });
    expect((await site.worker.client.status(job_id)).job.state).toBe("running");
    fs.writeFileSync(path.join(site.directory, "go2"), "");
    expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  });
});

describe("a scheduler that keeps no accounts", () => {
  test("has a job no more that had not started: nothing of it can, and nobody waits for ever", async () => {
    site.scheduler.behave({ holds: true });
    const { job_id } = await site.submit("echo ran");
    const id = await native(job_id);
    site.scheduler.behave({ holds: false });
    await eventually(async () => (await site.events(job_id, "scheduler.job_pending")).length === 1, { what: "that it is seen to wait" });
    site.scheduler.forget(id);
    const { job } = await site.worker.ended(job_id);
    expect(job.outcome).toMatchObject({
      reason: "spawn_failed",
      message: `slurm knows nothing of ${id} any more, and nothing of it had started`,
    });
  });

  test("is believed when it says that a job has ended, and then forgets it", async () => {
    const { job_id } = await site.submit("echo up; sleep 60");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    // What waits for the end of its records sees the job vanish before that.
    site.scheduler.forgetsEnded(id);
    site.scheduler.signal(id, "SIGKILL");
    const { job } = await site.worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "outcome_unknown", message: expect.stringContaining("FAILED") });
  });

  test("and has lost its state, has another job of that number: ours is not there, and nothing is done to the other", async () => {
    const { job_id } = await site.submit("echo up; sleep 60");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    await eventually(async () => (await site.events(job_id, "scheduler.job_running")).length === 1, { what: "that it is seen to run" });
    site.scheduler.signal(id, "SIGKILL");
    site.scheduler.giveAway(id);
    const status = () => site.worker.client.status(job_id);
    await eventually(async () => (await status()).obstacle?.includes(`slurm knows nothing of ${id}`), { what: "that it is not there" });
    await site.worker.client.cancel(job_id, { cancel_scheduler_job: true });
    expect((await site.worker.ended(job_id)).job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect((await status()).scheduler?.[0]?.status).toMatchObject({ record_found: false, nodes: null });
    expect(site.scheduler.jobs().find((job) => job.id === id)?.said?.phase).toBe("running");
  });
});

describe("a cancel", () => {
  test("leaves the scheduler's job alone unless it is meant, too", async () => {
    const { job_id } = await site.submit("echo up; until [ -e go3 ]; do sleep 0.05; done; echo late");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    await site.worker.client.cancel(job_id);
    const { job } = await site.worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect(job.outcome?.message).toContain(`job ${id} of slurm was left alone`);
    expect(site.scheduler.asked().filter((line) => /^(?:cancel|terminate) /.test(line) && line.endsWith(` ${id}`))).toEqual([]);
    expect(fs.existsSync(path.join(site.worker.attemptDir(job_id), "cancel.json"))).toBe(false);
    fs.writeFileSync(path.join(site.directory, "go3"), "");
    // It goes on being observed.
    await eventually(async () => (await site.events(job_id, "scheduler.job_completed")).length === 1, {
      what: "the scheduler's word on its end",
    });
    expect(await site.worker.stdout(job_id)).toBe("up\n");
  });

  test("of both ends a running job in order, with its outputs and its last words", async () => {
    const { job_id } = await site.submit("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    await site.worker.client.cancel(job_id, { cancel_scheduler_job: true });
    const { job } = await site.worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled", exit_code: 4 } });
    expect(await site.worker.stdout(job_id)).toBe("up\nbye\n");
    expect(site.scheduler.asked()).toContain(`terminate ${id}`);
    expect(site.scheduler.asked()).not.toContain(`cancel ${id}`);
    expect(await site.events(job_id, "scheduler.cancel_requested")).toHaveLength(1);
  });

  test("of both ends a job that does not listen by the scheduler's own cancel", async () => {
    const { job_id } = await site.submit("trap '' TERM; echo up; while :; do sleep 0.05; done");
    await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
    const id = await native(job_id);
    // Its shim does not listen either.
    site.scheduler.signal(id, "SIGSTOP");
    await site.worker.client.cancel(job_id, { cancel_scheduler_job: true });
    const { job } = await site.worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect(site.scheduler.asked().filter((line) => line.endsWith(` ${id}`) && !line.startsWith("observe"))).toEqual([
      `terminate ${id}`,
      `cancel ${id}`,
    ]);
  });

  test("of both ends a job that waits at once, and it never starts", async () => {
    site.scheduler.behave({ holds: true });
    const { job_id } = await site.submit("echo ran");
    const id = await native(job_id);
    site.scheduler.behave({ holds: false });
    await site.worker.client.cancel(job_id, { cancel_scheduler_job: true });
    const { job } = await site.worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect(site.scheduler.asked()).toContain(`cancel ${id}`);
    expect(site.scheduler.asked()).not.toContain(`terminate ${id}`);
  });

  test("that the scheduler refuses, or does not answer, is said and asked for again", async () => {
    site.scheduler.behave({ holds: true });
    const { job_id } = await site.submit("echo ran");
    const id = await native(job_id);
    site.scheduler.behave({ holds: false, silent: true });
    await site.worker.client.cancel(job_id, { cancel_scheduler_job: true });
    await eventually(async () => (await site.events(job_id, "scheduler.cancel_failed")).length === 1, { what: "that it failed" });
    expect((await site.worker.client.status(job_id)).obstacle).toContain(`slurm does not cancel ${id}: no answer`);
    expect((await site.worker.client.status(job_id)).job.state).toBe("leased");
    site.scheduler.behave({ silent: false });
    expect((await site.worker.ended(job_id)).job.state).toBe("canceled");
  });
});
