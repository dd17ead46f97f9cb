import { expect, test } from "bun:test";
import type { Identity } from "../../src/lib/system/process-identity.ts";
import { scaled } from "../runner/soak.ts";
import { Campaign } from "./campaign.ts";

const KILLS = 60;
const JOBS = 120;

const nameOf = ({ pid, start_time }: Identity): string => `${pid}/${start_time}`;

test("jobs are killed at random: each failure names the signal, and what they had written is there", async () => {
  await using campaign = await new Campaign("job kills").init();
  const killed = new Set<string>();
  const submitting = campaign.submit(scaled(JOBS, 10));
  for (let kill = 0; kill < scaled(KILLS, 8); kill++) {
    await Bun.sleep(campaign.faults.below(300));
    const { process: first } = campaign.faults.of(await campaign.running()) ?? {};
    if (first != null && campaign.kill(first)) killed.add(nameOf(first));
  }
  await submitting;
  const wasKilled = (one: Identity | null): boolean => one !== null && killed.has(nameOf(one));
  expect(await campaign.verify((attempt) => ({ shimKilled: false, reasons: wasKilled(attempt.process) ? ["signaled"] : [] }))).toEqual([]);
  expect(killed.size).toBeGreaterThan(0);
});
