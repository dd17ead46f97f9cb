import { expect, test } from "bun:test";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { ManualClock } from "../contract/queue-store/manual-clock.ts";
import { command, endpointOf, ROOMY } from "../contract/queue-store/scene.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

test("of many generations of workers the last thousand are kept, and any that still holds a lease", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const store = openQueue(directory.path, { clock, activeJobsMax: 10, leaseSeconds: 120 });
  await store.submit(command(), "workload");
  await Promise.all([1, 2, 3].map((n) => store.registerEndpoint(endpointOf(`endpoint_${n}`, clock))));
  await store.claim("endpoint_2", ROOMY);
  await Promise.all(Array.from({ length: 1_005 }, (_, i) => store.registerEndpoint(endpointOf(`endpoint_${i + 4}`, clock))));
  const page = await store.endpoints({ cursor: 1, limit: 3 });
  expect(page.items.map((endpoint) => endpoint.endpoint_id)).toEqual(["endpoint_2", "endpoint_9", "endpoint_10"]);
  expect(page.total).toBe(1_001);
  expect((await store.endpoints({ cursor: page.next_cursor, limit: 1 })).items[0]?.endpoint_id).toBe("endpoint_11");
  await store.close();
});
