import { expect, test } from "bun:test";
import { eventually } from "../../../runner/wait.ts";
import { Site } from "./site.ts";

const JOBS = 12;
const AT_ONCE = 4;

const begun = (site: Site): string[] => site.scheduler.asked().filter((line) => line.startsWith("submit "));

/** How many submissions were under way at most. */
function most(lines: readonly string[]): number {
  let [now, peak] = [0, 0];
  for (const line of lines) {
    if (line.startsWith("submit ")) now++;
    if (line.startsWith("submitted ")) now--;
    peak = Math.max(peak, now);
  }
  return peak;
}

test("a queue of jobs is submitted a few at a time, and a worker that is killed leaves no more in doubt than that", async () => {
  await using site = new Site();
  site.scheduler.behave({ holds: true, slow: 100 });
  await site.start();
  const submit = () => Promise.all(Array.from({ length: JOBS }, () => site.submit("echo ran")));
  const first = await submit();
  await eventually(() => site.scheduler.jobs().length === JOBS, { what: "all of them at the scheduler" });
  expect(most(site.scheduler.asked())).toBe(AT_ONCE);

  site.scheduler.behave({ submit: "vanishes", slow: 600_000 });
  const second = await submit();
  await eventually(() => begun(site).length === JOBS + AT_ONCE, { what: "the first of the others" });
  await site.worker.kill();
  site.scheduler.behave({ submit: "accepts", slow: 0 });
  await site.next().start();
  await eventually(() => site.scheduler.jobs().length === 2 * JOBS - AT_ONCE, { what: "all but those in doubt" });
  expect(begun(site)).toHaveLength(2 * JOBS);
  for (const { job_id } of [...first, ...second]) await site.worker.client.cancel(job_id);
  for (const { job_id } of [...first, ...second]) expect((await site.worker.ended(job_id)).job.state).toBe("canceled");
});
