import { expect, test } from "bun:test";
import type { Identity } from "../../src/lib/system/process-identity.ts";
import { scaled } from "../runner/soak.ts";
import { Campaign } from "./campaign.ts";

const KILLS = 60;
const JOBS = 120;

const nameOf = ({ pid, start_time }: Identity): string => `${pid}/${start_time}`;

test("shims are killed at random, some with the worker: their attempts end as unknown, their processes with them, and nothing else suffers", async () => {
  await using campaign = await new Campaign("shim kills").init();
  const { faults } = campaign;
  const killed = new Set<string>();
  const submitting = campaign.submit(scaled(JOBS, 10));
  for (let kill = 0; kill < scaled(KILLS, 8); kill++) {
    await Bun.sleep(faults.below(300));
    const { shim } = faults.of(await campaign.running()) ?? {};
    const withWorker = faults.below(4) === 0;
    if (withWorker) await campaign.killWorker();
    if (shim != null && campaign.kill(shim)) killed.add(nameOf(shim));
    if (withWorker) await campaign.startWorker();
  }
  await submitting;
  expect(
    await campaign.verify(({ shim }) => {
      const shimKilled = shim !== null && killed.has(nameOf(shim));
      return { shimKilled, reasons: shimKilled ? ["outcome_unknown", "canceled"] : [] };
    }),
  ).toEqual([]);
  expect(killed.size).toBeGreaterThan(0);
});
