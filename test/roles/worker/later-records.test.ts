import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

/** As if a shim of a later version had made the claim, which says of what version its records are. Returns the way back. */
function makeLater(attemptDir: string): () => void {
  const file = path.join(attemptDir, "start.json");
  const before = fs.readFileSync(file, "utf8");
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(before), record_version: 2 }));
  return () => fs.writeFileSync(file, before);
}

const goesOn = async (worker: WorkerHarness): Promise<void> => {
  const jobs = await Promise.all(Array.from({ length: 3 }, (_, i) => worker.shell(`echo ${i}`)));
  for (const { job_id } of jobs) expect((await worker.ended(job_id)).job.state).toBe("succeeded");
  expect((await worker.client.workers()).workers[0]!.active_leases_by_kind).toEqual({});
};

const setAside = (worker: WorkerHarness, jobId: string): Promise<string> =>
  eventually(async () => (await worker.client.job(jobId)).quarantine, { what: "the quarantine" });

describe("records of a later version", () => {
  test("the job is put aside, the worker says so, shim and job are left alone", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("exec sleep 600");
    const { attempt } = await worker.running(job_id);
    await worker.kill();
    const restore = makeLater(worker.attemptDir(job_id));
    await worker.start();
    const status = await eventually(async () => {
      const [found] = (await worker.client.workers()).workers;
      return found!.quarantined === 1 && found;
    });
    expect(status).toMatchObject({ lane_last_error: expect.stringContaining(`start.json of ${job_id}`) });
    expect((await worker.client.job(job_id)).quarantine).toContain("record version 2");
    expect(isAlive(attempt!.shim!)).toBe(true);
    expect(isAlive(attempt!.process!)).toBe(true);
    const { job_id: next } = await worker.shell("echo next");
    expect((await worker.ended(next)).job.state).toBe("succeeded");

    // As a worker of that version would, one that understands the records takes over.
    await worker.kill();
    restore();
    await worker.start();
    await worker.client.cancel(job_id);
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "canceled", quarantine: null });
    expect(isAlive(attempt!.process!)).toBe(false);
  });

  test.each(["cancel", "repair"] as const)("that was put aside is ended by a %s once nothing of it runs, and not before", async (how) => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("exec sleep 600");
    const { attempt } = await worker.running(job_id);
    await worker.kill();
    makeLater(worker.attemptDir(job_id));
    await worker.start();
    expect(await setAside(worker, job_id)).toContain("once its processes have ended, it can be canceled");
    const repair = () => worker.client.repair();
    if (how === "cancel") await worker.client.cancel(job_id);
    else expect(await repair()).toMatchObject({ repaired: [], remaining: [{ subject: job_id, check: "quarantine", repairable: false }] });
    expect(isAlive(attempt!.process!)).toBe(true);
    expect((await worker.client.status(job_id)).terminal).toBe(false);
    for (const { pid } of [attempt!.shim!, attempt!.process!]) process.kill(pid, "SIGKILL");
    await eventually(() => !isAlive(attempt!.shim!) && !isAlive(attempt!.process!));
    if (how === "repair") expect(await repair()).toMatchObject({ repaired: [{ subject: job_id, check: "quarantine" }], remaining: [] });
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({
      state: how === "cancel" ? "canceled" : "failed",
      quarantine: null,
      outcome: { reason: how === "cancel" ? "canceled" : "outcome_unknown" },
    });
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    await goesOn(worker);
  });
});

describe("a record of a later version that its shim cannot have written", () => {
  test.each(["exit.json", "process.json", "spec.json", "truncated-stdout.json"])("%s: counts as none", async (name) => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell(
      `sleep 0.3; d=$(dirname "$CLIO_RELAY_EVENTS"); echo '{"record_version":2}' > $d/x; mv $d/x $d/${name}; sleep 0.3; exit 3`,
    );
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({
      state: "failed",
      quarantine: null,
      outcome: { reason: name === "exit.json" ? "outcome_unknown" : "exit_nonzero" },
    });
    await goesOn(worker);
  });

  test("exit.json, with start.json to match: counts as none while the worker remembers", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell(
      `sleep 0.3; cd $(dirname "$CLIO_RELAY_EVENTS"); for f in exit start; do echo '{"record_version":2}' > x; mv x $f.json; done; exit 0`,
    );
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
    await goesOn(worker);
  });
});
