import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { auditOffline } from "../../../../src/roles/worker/offline.ts";
import { eventually } from "../../../runner/wait.ts";
import { historyFaults } from "../harness.ts";
import type { Death } from "../mortal.ts";
import type { Manner } from "./fake-scheduler.ts";
import { Site } from "./site.ts";

/** Counts its starts by files that only one start can make. */
const LINE = "n=$" + "{CLIO_RELAY_ATTEMPT##*/}; (set -C; : > started-$n) || : > again-$n; echo said";

const submit = (site: Site) => site.submit(LINE, {}, { idempotency_key: "once" });

/** Run a worker that dies at a call, or of what the scheduler does. */
async function dies(site: Site, death: Death | null): Promise<void> {
  const worker = site.next(death);
  const child = worker.spawn();
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
  try {
    await eventually(async () => ended() || (await submit(site)), { what: "a worker to submit to" });
    await eventually(ended, { what: `death ${death?.when} ${death?.call}` });
    expect(child.signalCode).toBe("SIGKILL");
  } finally {
    await worker.kill();
  }
}

const at = (when: Death["when"], call: string): Death => ({ when, call });

// The steps of docs/schedulers.md, each by the call that begins or ends it.
test.each([
  ["after the claim was committed", [at("after", "claim")], {}, 2],
  ["when the batch script is written", [at("before", "intendSubmission")], {}, 2],
  ["when the scheduler has accepted, and before the command's word is read", [null], { submit: "dies" }, 1],
  ["when the command has named the job", [at("after", "scheduler.submit")], {}, 1],
  ["before the submission is committed", [at("before", "recordSubmission")], {}, 1],
  ["after the submission was committed", [at("after", "recordSubmission")], {}, 1],
  ["before the scheduler's word is committed", [at("before", "observeScheduler")], {}, 1],
  ["before running is committed", [at("before", "startAttempt")], {}, 1],
  ["after running was committed", [at("after", "startAttempt")], {}, 1],
  ["before its end is committed", [at("before", "settle")], {}, 1],
  ["after its end was committed", [at("after", "settle")], {}, 1],
] satisfies [string, (Death | null)[], Partial<Manner>, number][])(
  "SIGKILL of the worker %s: one job of the scheduler, and it runs once",
  async (_step, deaths, manner, attempts) => {
    await using site = new Site();
    site.scheduler.behave(manner);
    for (const death of deaths) await dies(site, death);
    site.scheduler.behave({ submit: "accepts" });
    const worker = await site.next().start();
    const { job_id } = await submit(site);
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "succeeded", attempts, outcome: { reason: "completed" } });
    expect(fs.readdirSync(site.directory).filter((name) => /^(?:started|again)-/.test(name))).toEqual([`started-${attempts}`]);
    expect(await worker.stdout(job_id)).toBe("said\n");
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    expect(site.scheduler.jobs()).toHaveLength(1);
    expect(await worker.drain()).toBe(0);
    expect(await auditOffline(worker.coreDir)).toMatchObject({ ok: true, findings: [] });
  },
);

test.each([
  ["after the intention was committed", at("after", "intendSubmission")],
  ["before the submit command runs", at("before", "scheduler.submit")],
] satisfies [string, Death][])(
  "SIGKILL of the worker %s: nobody can tell, nothing is submitted again, and a cancel ends it",
  async (_step, death) => {
    await using site = new Site();
    await dies(site, death);
    const worker = await site.next().start();
    const { job_id } = await submit(site);
    await eventually(async () => (await site.events(job_id, "scheduler.reconciliation_unresolved")).length === 1, {
      what: "that it is unresolved",
    });
    expect((await worker.client.status(job_id)).job.state).toBe("leased");
    await worker.client.cancel(job_id, { cancel_scheduler_job: true });
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
    expect(site.scheduler.jobs()).toEqual([]);
    expect(site.scheduler.asked().filter((line) => line.startsWith("submit"))).toEqual([]);
    expect(fs.existsSync(path.join(site.directory, "started-1"))).toBe(false);
  },
);

test("SIGKILL of the worker while the marker is looked up, twice: it is found by the next one", async () => {
  await using site = new Site();
  site.scheduler.behave({ holds: true });
  for (const death of [at("after", "scheduler.submit"), at("before", "scheduler.find"), at("after", "scheduler.find")])
    await dies(site, death);
  const worker = await site.next().start();
  const { job_id } = await submit(site);
  await eventually(async () => (await site.events(job_id, "scheduler.job_detected")).length === 1, { what: "that it is found" });
  site.scheduler.say("1", null);
  site.scheduler.run("1");
  expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 1 });
  expect(site.scheduler.jobs()).toHaveLength(1);
  expect(site.scheduler.asked().filter((line) => line.startsWith("submit"))).toHaveLength(1);
});

test("SIGKILL of the worker between winning start.json and the end of a refused submission: it stays refused", async () => {
  await using site = new Site();
  site.scheduler.behave({ submit: "refuses" });
  await dies(site, at("before", "recordSubmission"));
  site.scheduler.behave({ submit: "accepts" });
  const worker = await site.next().start();
  const { job_id } = await submit(site);
  expect((await worker.ended(job_id)).job.outcome).toMatchObject({
    reason: "spawn_failed",
    message: "slurm refused it: no such partition",
  });
  expect(site.scheduler.jobs()).toEqual([]);
});

test("the executable that a batch script names is on record for as long as something may be at a scheduler", async () => {
  await using site = new Site();
  const kept = path.join(site.worker.coreDir, "batch-executables");
  site.scheduler.behave({ holds: true });
  await site.start();
  const { job_id } = await submit(site);
  await eventually(async () => (await site.events(job_id, "scheduler.job_detected")).length === 1, { what: "its submission" });
  expect(fs.readFileSync(kept, "utf8")).toBe(`${process.execPath}\n`);
  await site.worker.drain();
  await site.worker.start();
  expect(fs.existsSync(kept)).toBe(true);
  site.scheduler.say("1", null);
  site.scheduler.run("1");
  await site.worker.ended(job_id);
  await eventually(async () => (await site.events(job_id, "scheduler.job_completed")).length === 1, {
    what: "the scheduler's word on its end",
  });
  await site.worker.drain();
  await site.worker.start();
  expect(fs.existsSync(kept)).toBe(false);
});

test("a refusal is believed without accounts once nothing can come of it, and not before", async () => {
  await using site = new Site();
  site.scheduler.behave({ submit: "refuses", unaccounted: true });
  await site.start();
  const { job_id } = await submit(site);
  expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "spawn_failed" });
  const start = JSON.parse(fs.readFileSync(path.join(site.worker.attemptDir(job_id), "start.json"), "utf8"));
  expect(start).toMatchObject({ claimed_by: "worker" });
  expect(site.scheduler.asked().filter((line) => line.startsWith("submit"))).toHaveLength(1);
  expect(site.scheduler.asked().filter((line) => line.startsWith("find")).length).toBeGreaterThan(1);
});

test("a refusal by a scheduler that does not answer is known to the next worker, too", async () => {
  await using site = new Site();
  site.scheduler.behave({ submit: "refuses", silent: true });
  await site.start();
  const { job_id } = await submit(site);
  await eventually(async () => (await site.worker.client.status(job_id)).obstacle?.includes("slurm does not answer"), {
    what: "the refusal",
  });
  await site.worker.kill();
  const worker = await site.next().start();
  await eventually(async () => (await worker.client.status(job_id)).obstacle?.includes("slurm does not answer"), { what: "what is known" });
  site.scheduler.behave({ submit: "accepts", silent: false });
  expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 2 });
  expect(site.scheduler.jobs()).toHaveLength(1);
});
