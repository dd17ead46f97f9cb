import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { JobSubmission } from "../../src/domain/job.ts";
import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock, timestamp } from "../../src/lib/waiting/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { readable } from "../table.ts";
import { latencyOf } from "../yardsticks/latency.ts";

const CLAIMS = 200;

/** Median time of a claim with `backlog` jobs queued; claimed jobs stay claimed. */
async function claimMs(directory: string, backlog: number): Promise<number> {
  fs.mkdirSync(directory);
  const store = await openQueue(directory, { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 });
  try {
    const submission = v.parse(JobSubmission, { cluster: "local", kind: "command", spec: { argv: ["true"] } });
    for (let made = 0; made < backlog; made += 1_000) {
      await Promise.all(Array.from({ length: Math.min(1_000, backlog - made) }, () => store.submit(submission, "workload")));
    }
    const capacity = { concurrency: CLAIMS + 2, control_query_concurrency: 1, kind_concurrency: {}, scheduler_jobs: 500 };
    const now = timestamp(systemClock);
    await store.registerEndpoint({
      endpoint_id: "endpoint_bench",
      role: "worker",
      cluster: "local",
      process: self(),
      version: "bench",
      capacity,
      registered_at: now,
      last_seen_at: now,
      stopped_at: null,
      lane_last_error: null,
    });
    const samples: number[] = [];
    for (let i = 0; i < CLAIMS; i++) {
      const begin = performance.now();
      const claim = await store.claim("endpoint_bench", capacity);
      samples.push(performance.now() - begin);
      if (claim === null) throw new Error("nothing to claim");
    }
    return latencyOf(samples).p50;
  } finally {
    await store.close();
  }
}

/** A claim's cost must not depend on the backlog. Durable: each claim is a commit. */
export const row: Row = {
  name: "claim",
  async run(context: BenchContext): Promise<Result[]> {
    const few = 1_000;
    const many = Math.max(2_000, Math.ceil(100_000 * context.scale));
    const small = await claimMs(path.join(context.directory, "small"), few);
    const large = await claimMs(path.join(context.directory, "large"), many);
    return [
      {
        name: `claim with ${readable(many)} queued, p50`,
        unit: "ms",
        yardstick: { name: `with ${readable(few)} queued`, value: small },
        ours: large,
        target: { ratioAtMost: 1.5 },
      },
    ];
  },
};
