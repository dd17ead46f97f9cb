import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

const temporary = temporaryDirectories();

/** A worker that was killed while its job runs, and the way to let that end. */
async function killedWithJob(spares: number) {
  const worker = await new WorkerHarness({ spares }).start();
  const release = path.join(temporary(), "release");
  const { job_id } = await worker.shell(`echo started; until [ -e ${release} ]; do sleep 0.05; done; echo ended`);
  const { attempt } = await worker.running(job_id);
  await worker.kill();
  return { worker, job_id, first: attempt!.process!, shim: attempt!.shim!, release: () => fs.writeFileSync(release, "") };
}

/** A copy of its queue and spool, as `cp -a` makes one. */
function copyOf(worker: WorkerHarness): string {
  const directory = path.join(temporary(), "copy");
  for (const part of ["core", "spool"]) fs.cpSync(path.join(worker.directory, part), path.join(directory, part), { recursive: true });
  return directory;
}

describe("a worker on a copy that was made while a job ran", () => {
  test.each([
    ["whole", 0, () => undefined],
    ["whole, with a spare's shim", 1, () => undefined],
    ["without the spool", 0, (directory: string) => fs.rmSync(path.join(directory, "spool"), { recursive: true })],
  ] as const)("%s: does not know how it ends, and leaves it to the original", async (_, spares, change) => {
    const { worker: original, job_id, first, shim, release } = await killedWithJob(spares);
    await using worker = original;
    const directory = copyOf(worker);
    change(directory);
    {
      await using copy = new WorkerHarness({}, directory);
      await copy.start();
      const { job } = await copy.ended(job_id);
      expect(job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
      expect(job.outcome!.message).toContain(worker.attemptDir(job_id));
      await copy.client.cancel(job_id);
      expect(await copy.drain()).toBe(0);
      expect([isAlive(first), isAlive(shim)]).toEqual([true, true]);
      fs.rmSync(directory, { recursive: true });
    }
    await worker.start();
    release();
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(await worker.stdout(job_id)).toBe("started\nended\n");
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });
});

test("a home that was moved while a job ran is the same one: the job can be canceled there", async () => {
  const { worker: original, job_id, first } = await killedWithJob(0);
  await using worker = original;
  const directory = path.join(temporary(), "moved");
  fs.renameSync(worker.directory, directory);
  await using moved = new WorkerHarness({}, directory);
  await moved.start();
  expect((await moved.client.status(job_id)).job.state).toBe("running");
  await moved.client.cancel(job_id);
  expect((await moved.ended(job_id)).job.state).toBe("canceled");
  expect(isAlive(first)).toBe(false);
});
