import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { Campaign } from "./campaign.ts";
import { effectFile } from "./work.ts";

/** A campaign whose jobs have all ended, without any fault. */
async function finished(kinds: readonly ["plain" | "leaving" | "reporting", ...("plain" | "leaving" | "reporting")[]]): Promise<Campaign> {
  const campaign = await new Campaign("self-test", { kinds }).init();
  await campaign.submit(3);
  await campaign.ended();
  return campaign;
}

test("a campaign without faults finds nothing", async () => {
  await using campaign = await finished(["plain", "leaving", "reporting"]);
  expect(await campaign.verify()).toEqual([]);
  expect(campaign.submitted.length).toBe(3);
});

test("a campaign finds a second start, a log that lacks bytes, a lost report, a stray file and a job's process", async () => {
  await using campaign = await finished(["plain"]);
  const [first, second, third] = campaign.submitted as [Campaign["submitted"][0], Campaign["submitted"][0], Campaign["submitted"][0]];
  fs.writeFileSync(path.join(path.dirname(effectFile(first.job.work, 1)), "again-1-77"), "");
  const log = path.join(campaign.relay.attemptDirectory(second.jobId), "stdout.log");
  fs.truncateSync(log, fs.statSync(log).size - 1);
  const counts = JSON.parse(fs.readFileSync(effectFile(third.job.work, 1), "utf8")) as { reports: number };
  fs.writeFileSync(effectFile(third.job.work, 1), JSON.stringify({ ...counts, reports: counts.reports + 1 }));
  fs.writeFileSync(path.join(campaign.relay.attemptDirectory(third.jobId), "left.tmp"), "");
  const env = { CLIO_RELAY_ATTEMPT: `${third.jobId}/1` };
  const child = Bun.spawn(["sleep", "1000"], { env, stdio: ["ignore", "ignore", "ignore"] });
  try {
    const faults = (await campaign.verify()).join("\n");
    expect(faults).toContain(`${first.jobId} (plain job0): attempt 1 was started 2 times`);
    expect(faults).toContain(`${second.jobId} (plain job1): stdout.log cannot be read`);
    expect(faults).toContain(`${third.jobId} (plain job2): 0 reports on record, 1 were made`);
    expect(faults).toContain(`left in the spool: ${third.jobId}/attempt-1/left.tmp`);
    expect(faults).toContain(`left running: ${child.pid} sleep 1000`);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});
