import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import path from "node:path";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

/** A worker that has started anew with a job that runs and whose record the queue cannot read any more. */
async function unreadable(worker: WorkerHarness) {
  await worker.start();
  const { job_id } = await worker.shell("sleep 600 & exec sleep 600");
  const { attempt } = await worker.running(job_id);
  await worker.drain();
  const database = new Database(path.join(worker.coreDir, "queue.db"));
  database.run("UPDATE jobs SET spec = ? WHERE job_id = ?", ['{"argv": 7', job_id]);
  database.close();
  await worker.start();
  expect((await worker.client.workers()).workers[0]).toMatchObject({ quarantined: 1, active_leases_by_kind: { command: 1 } });
  expect([isAlive(attempt!.shim!), isAlive(attempt!.process!)]).toEqual([true, true]);
  const state = async () => (await worker.client.queue({ include_terminal: true })).jobs.find((job) => job.job_id === job_id)!.state;
  return { id: job_id, shim: attempt!.shim!, first: attempt!.process!, state };
}

const goesOn = async (worker: WorkerHarness, id: string): Promise<void> => {
  expect((await worker.client.workers()).workers[0]!.active_leases_by_kind).toEqual({});
  const { job_id } = await worker.shell("echo after");
  expect((await worker.ended(job_id)).job.state).toBe("succeeded");
  expect(historyFaults(await worker.events(id))).toEqual([]);
};

test("a job whose record cannot be read is canceled with everything that it has started", async () => {
  await using worker = new WorkerHarness();
  const { id, shim, first, state } = await unreadable(worker);
  await expect(worker.client.cancel(id)).rejects.toMatchObject({
    code: "queue_corrupt",
    message: expect.stringContaining("; the job is canceled, and nothing of it runs"),
  });
  expect([isAlive(shim), isAlive(first), await state()]).toEqual([false, false, "canceled"]);
  await goesOn(worker, id);
});

test("a repair of the queue ends it once nothing of it runs, and not before", async () => {
  await using worker = new WorkerHarness();
  const { id, shim, first, state } = await unreadable(worker);
  expect((await worker.client.repair()).remaining).toMatchObject([{ check: "record", subject: id, repairable: false }]);
  expect([isAlive(first), await state()]).toEqual([true, "running"]);
  process.kill(shim.pid, "SIGKILL");
  process.kill(-first.pid, "SIGKILL");
  await eventually(() => !isAlive(shim) && !isAlive(first));
  expect((await worker.client.repair()).repaired).toMatchObject([{ check: "record", subject: id, repairable: true }]);
  expect(await state()).toBe("failed");
  await goesOn(worker, id);
});
