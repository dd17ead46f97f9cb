import { expect, test } from "bun:test";
import { identify } from "../../src/lib/system/process-identity.ts";
import { scaled } from "../runner/soak.ts";
import { Campaign } from "./campaign.ts";

const STOPS = 60;
const JOBS = 100;

test("worker, daemon and shims are stopped and go on at random: nothing is lost, and nothing ends as it did not", async () => {
  await using campaign = await new Campaign("stops").init();
  const { relay, faults } = campaign;
  const held: Promise<void>[] = [];
  /** Stop a process for a while; the next one may be stopped meanwhile. */
  const hold = (pid: number, ms: number): void => {
    const identity = identify(pid);
    if (identity === null || !campaign.kill(identity, "SIGSTOP")) return;
    held.push(Bun.sleep(ms).then(() => void campaign.kill(identity, "SIGCONT")));
  };
  const submitting = campaign.submit(scaled(JOBS, 10));
  let stops = 0;
  for (; stops < scaled(STOPS, 8); stops++) {
    await Bun.sleep(faults.below(250));
    const shim = faults.of(await campaign.running())?.shim;
    const { stdout } = await relay.run(["desktop", "status", "--json"]);
    const daemon = (JSON.parse(stdout) as { process?: { pid: number } }).process;
    const ms = faults.below(1_500);
    const chosen = faults.of([shim?.pid, shim?.pid, campaign.worker?.pid, daemon?.pid]);
    if (chosen !== undefined) hold(chosen, ms);
    // What asks the worker or the daemon for the next one waits for them anyhow; two shims at once are another matter.
    if (chosen !== shim?.pid) await Promise.all(held.splice(0));
  }
  await submitting;
  await Promise.all(held);
  expect(await campaign.verify()).toEqual([]);
  expect(stops).toBe(scaled(STOPS, 8));
});
