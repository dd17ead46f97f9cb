import { expect, test } from "bun:test";
import { scaled } from "../runner/soak.ts";
import { Campaign } from "./campaign.ts";

const KILLS = 50;
const JOBS = 200;

test("the worker is killed again and again: every job ends once, no byte is missing or doubled, every history is whole", async () => {
  await using campaign = await new Campaign("worker kills").init();
  const kills = scaled(KILLS, 5);
  const jobs = scaled(JOBS, 20);
  const submitting = campaign.submit(jobs);
  for (let kill = 0; kill < kills; kill++) {
    await Bun.sleep(campaign.faults.below(600));
    await campaign.killWorker();
    if (campaign.faults.below(3) === 0) await Bun.sleep(campaign.faults.below(400));
    await campaign.startWorker();
  }
  await submitting;
  expect(await campaign.verify()).toEqual([]);
  expect(campaign.submitted.length).toBe(jobs);
});
