import { expect, test } from "bun:test";
import type { Event } from "../../src/domain/event.ts";
import { historyFaults } from "../roles/worker/harness.ts";
import { scaled } from "../runner/soak.ts";
import { Campaign } from "./campaign.ts";

const KILLS = 25;
const JOBS = 40;

test("the desktop is killed while jobs are watched: every follower gets every event and every byte once", async () => {
  await using campaign = await new Campaign("desktop kills", { kinds: ["plain", "failing", "bulk", "reporting", "retried"] }).init();
  const { relay, faults, submitted } = campaign;
  const watches: { jobId: string; key: string; events: Promise<string>; log: Promise<Buffer>; codes: Promise<number>[] }[] = [];
  const following = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      await campaign.submit(1);
      const { jobId, job } = submitted.at(-1)!;
      const watch = relay.start(["job", "watch", jobId, "--json"]);
      const follow = relay.start(["job", "read-log", jobId, "--stream", "stdout", "--raw", "-f"]);
      const log = follow.stdout.bytes().then((bytes) => Buffer.from(bytes));
      watches.push({ jobId, key: job.work.key, events: watch.stdout.text(), log, codes: [watch.exited, follow.exited] });
    }
  };
  const submitting = following(scaled(JOBS, 8));
  for (let kill = 0; kill < scaled(KILLS, 5); kill++) {
    await Bun.sleep(faults.below(400));
    const status = await relay.run(["desktop", "status", "--json"]);
    const { process: daemon } = JSON.parse(status.code === 0 ? status.stdout : "{}") as { process?: { pid: number; start_time: number } };
    if (daemon !== undefined) process.kill(daemon.pid, "SIGKILL");
  }
  await submitting;
  await campaign.ended();

  const wrong: string[] = [];
  for (const { jobId, key, events, log, codes } of watches) {
    const all = (await events)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Event);
    wrong.push(...historyFaults(all).map((fault) => `${jobId} ${key}, as watched: ${fault}`));
    const whole = await relay.bytes("job", "read-log", jobId, "--stream", "stdout", "--raw");
    const followed = await log;
    if (!whole.equals(followed)) wrong.push(`${jobId} ${key}: followed ${followed.length} bytes of ${whole.length}`);
    const [watched, read] = await Promise.all(codes);
    const { total } = await relay.json<{ total: number }>("job", "attempts", jobId);
    if (total === 0 || read !== 0 || (watched !== 0 && watched !== 10))
      wrong.push(`${jobId} ${key}: watch ended with ${watched}, read-log with ${read}`);
  }
  expect(wrong).toEqual([]);
  expect(watches.length).toBe(scaled(JOBS, 8));
  expect(await campaign.verify()).toEqual([]);
});
