import { expect, test } from "bun:test";
import fs from "node:fs";
import { fillUp, smallFileSystems } from "../execution/tmpfs.ts";
import { describeWith } from "../runner/components.ts";
import { scaled } from "../runner/soak.ts";
import { Campaign } from "./campaign.ts";

const FILLINGS = 30;
const JOBS = 80;

describeWith("tmpfs", "a disk that is full again and again", () => {
  const small = smallFileSystems();

  test("for the state, the spool and everything else: what is refused is taken later, and what was taken ends whole", async () => {
    const disk = small("48m");
    // The others write where the disk is full themselves, or leave outputs that are then only referenced.
    const kinds = ["plain", "plain", "failing", "daemon", "canceled", "timeout"] as const;
    await using campaign = await new Campaign("disk full", { directory: disk, kinds }).init();
    const { faults } = campaign;
    const submitting = campaign.submit(scaled(JOBS, 10));
    for (let i = 0; i < scaled(FILLINGS, 4); i++) {
      await Bun.sleep(faults.below(800));
      const ballast = fillUp(disk, faults.of([0, 0, 4_096, 65_536]));
      await Bun.sleep(faults.below(1_500));
      fs.rmSync(ballast);
    }
    await submitting;
    expect(await campaign.verify()).toEqual([]);
    expect(campaign.submitted.length).toBe(scaled(JOBS, 10));
  });
});
