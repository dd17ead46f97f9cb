/**
 * Owns the queue in a directory, submits jobs from several clients at once and prints each id when it was acknowledged, one a line.
 * Arguments: directory, how many (0: for ever), and `die` to be killed or `end` to close at the end.
 */
import fs from "node:fs";
import { isRelayError } from "../../src/domain/errors.ts";
import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openOwnedQueue } from "../../src/queue/owned-queue.ts";
import { command } from "../contract/queue-store/scene.ts";

const [directory, count, ending] = process.argv.slice(2);
const total = Number(count) || Number.POSITIVE_INFINITY;
try {
  const queue = openOwnedQueue(directory!, {
    ownership: { identity: self(), endpointId: "endpoint_child", takeOver: false, confirmHostDead: false, clock: systemClock },
    queue: { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 },
    repair: false,
  });
  let begun = 0;
  const client = async (): Promise<void> => {
    while (begun++ < total) {
      const { job } = await queue.store.submit(command(), "workload");
      fs.writeSync(1, `${job.job_id}\n`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  if (ending === "die") {
    // The mark of the last commit follows its answer in the next turn.
    await new Promise((done) => setImmediate(done));
    process.kill(process.pid, "SIGKILL");
  }
  await queue.close();
} catch (error) {
  console.error(isRelayError(error) ? error.code : error);
  process.exitCode = 1;
}
