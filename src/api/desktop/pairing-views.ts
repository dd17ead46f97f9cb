import * as v from "valibot";
import { Slots } from "../../domain/endpoint.ts";
import { looseText, text } from "../../domain/primitives.ts";
import { SchedulerChoice } from "../../domain/scheduler.ts";
import { AttendedRequest } from "./link-views.ts";

/** POST /clusters/{name}/pair. The code is a secret, and is kept nowhere. */
export const PairClusterRequest = v.strictObject({
  code: text(1_024),
  /** What is to be in the cluster's entry, besides who answers and where. */
  entry: v.strictObject({
    env_setup: v.nullable(looseText(64 * 1024)),
    env_setup_strict: v.exactOptional(v.boolean()),
    worker_capacity: Slots,
    scheduler_provider: v.exactOptional(SchedulerChoice),
    /** A private file with the relay-host's token, absolute; null: CLIO_RELAY_HOST_TOKEN of the daemon. */
    relay_token_file: v.nullable(text(1_024)),
    /** Certification authorities in PEM that vouch for it, absolute; absent: none besides the system's. */
    relay_ca_file: v.exactOptional(text(1_024)),
  }),
  /** Of the command that pairs: the addresses of proxies count. */
  request: AttendedRequest,
});
export type PairClusterRequest = v.InferOutput<typeof PairClusterRequest>;
