import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import path from "node:path";
import { eventually } from "../../../runner/wait.ts";
import { Site } from "./site.ts";

/** A job at the scheduler whose record the queue cannot read any more, and a worker that has started anew. */
async function unreadable(site: Site): Promise<string> {
  await site.start();
  const { job_id } = await site.submit("trap 'exit 4' TERM; echo up; while :; do sleep 0.05; done");
  await eventually(async () => (await site.worker.stdout(job_id).catch(() => "")) === "up\n", { what: "its output" });
  await site.worker.drain();
  const database = new Database(path.join(site.worker.coreDir, "queue.db"));
  database.run("UPDATE jobs SET spec = ? WHERE job_id = ?", ['{"argv": 7', job_id]);
  database.close();
  await site.worker.start();
  return job_id;
}

const state = async (site: Site, id: string) =>
  (await site.worker.client.queue({ include_terminal: true })).jobs.find((job) => job.job_id === id)?.state;
const isAtWork = (site: Site): boolean => !site.scheduler.asked().some((line) => /^(?:cancel|terminate) /.test(line));

test("a repair does not end a job that cannot be read while the scheduler has it, a cancel does and leaves it there", async () => {
  await using site = new Site();
  const id = await unreadable(site);
  expect((await site.worker.client.repair()).remaining).toMatchObject([{ check: "record", subject: id }]);
  expect(await state(site, id)).toBe("running");
  await expect(site.worker.client.cancel(id)).rejects.toMatchObject({ code: "queue_corrupt" });
  expect(await state(site, id)).toBe("canceled");
  expect(isAtWork(site)).toBe(true);
});

test("a cancel of both asks the scheduler, and ends the job once that has", async () => {
  await using site = new Site();
  const id = await unreadable(site);
  await eventually(
    async () => {
      await expect(site.worker.client.cancel(id, { cancel_scheduler_job: true })).rejects.toMatchObject({ code: "queue_corrupt" });
      return (await state(site, id)) === "canceled";
    },
    { what: "its end" },
  );
  expect(site.scheduler.asked()).toContain("cancel 1");
});
