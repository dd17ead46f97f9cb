/** Owns the queue in a directory, submits as many jobs as it is told, prints `ready`, and waits to be killed. */

import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openOwnedQueue } from "../../src/queue/owned-queue.ts";
import { command } from "../contract/queue-store/scene.ts";

const [directory, jobs] = process.argv.slice(2);
const { store } = openOwnedQueue(directory!, {
  ownership: { identity: self(), endpointId: "endpoint_child", takeOver: false, confirmHostDead: false, clock: systemClock },
  queue: { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 },
  repair: false,
});
for (let i = 0; i < Number(jobs); i++) await store.submit(command(), "workload");
// The mark of the last commit follows its answer in the next turn.
await new Promise((done) => setImmediate(done));
console.log("ready");
setInterval(() => undefined, 60_000);
