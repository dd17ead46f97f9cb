/** Owns the queue in a directory until it is killed. */

import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { acquireOwnership } from "../../src/queue/ownership.ts";

acquireOwnership(process.argv[2]!, {
  identity: self(),
  endpointId: "endpoint_child",
  takeOver: false,
  confirmHostDead: false,
  clock: systemClock,
});
setInterval(() => undefined, 60_000);
