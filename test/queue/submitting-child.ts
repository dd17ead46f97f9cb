/**
 * Submits jobs from several clients at once and prints each id when it was acknowledged, one a line.
 * Arguments: directory, how many (0: for ever), and `die` to be killed or `end` to close at the end.
 */
import fs from "node:fs";
import { isRelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { command } from "../contract/queue-store/scene.ts";

const [directory, count, ending] = process.argv.slice(2);
const total = Number(count) || Number.POSITIVE_INFINITY;
try {
  const store = openQueue(directory!, { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 });
  let begun = 0;
  const client = async (): Promise<void> => {
    while (begun++ < total) {
      const { job } = await store.submit(command(), "workload");
      fs.writeSync(1, `${job.job_id}\n`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  if (ending === "die") process.kill(process.pid, "SIGKILL");
  await store.close();
} catch (error) {
  console.error(isRelayError(error) ? error.code : error);
  process.exitCode = 1;
}
