import * as v from "valibot";
import { JobSubmission } from "../../src/domain/job.ts";
import { LIMITS } from "../../src/domain/limits.ts";
import { self } from "../../src/lib/system/process-identity.ts";
import { systemClock, timestamp } from "../../src/lib/waiting/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import type { QueueStore } from "../../src/queue/store.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { readable } from "../table.ts";
import { type Latency, latencyOf } from "../yardsticks/latency.ts";

const ENDPOINT = "endpoint_bench";
const SHA256 = "0".repeat(64);
const QUERIES = 200;
const PINNING = 20;
const job = (more: Record<string, unknown> = {}) =>
  v.parse(JobSubmission, { cluster: "local", kind: "command", spec: { argv: ["true"] }, ...more });

/** A job that has ended and left the artifacts. */
async function producer(store: QueueStore, ids: readonly string[]): Promise<void> {
  const now = timestamp(systemClock);
  const capacity = { concurrency: 2, control_query_concurrency: 1, kind_concurrency: {}, scheduler_jobs: 500 };
  const process = self();
  await store.registerEndpoint({
    endpoint_id: ENDPOINT,
    role: "worker",
    cluster: "local",
    process,
    version: "bench",
    capacity,
    registered_at: now,
    last_seen_at: now,
    stopped_at: null,
    lane_last_error: null,
  });
  await store.submit(job(), "workload");
  const claim = await store.claim(ENDPOINT, capacity);
  const fence = { job_id: claim!.job.job_id, attempt: 1 };
  await store.startAttempt(fence, { shim: process, process, started_at: now });
  const capture = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true };
  await store.settle(fence, {
    outcome: { reason: "completed", exit_code: 0, signal: null, message: "", residual: [] },
    ended_at: now,
    captures: { stdout: capture, stderr: capture },
    artifacts: ids.map((artifact_id) => ({
      artifact_id,
      kind: "execution_output",
      name: "mesh.bin",
      uri: "spool:x",
      size_bytes: 1,
      sha256: SHA256,
      metadata: {},
    })),
    events: [],
  });
}

/** Times of pages of 500, anywhere among the edges. */
async function pages(store: QueueStore, artifactId: string, edges: number): Promise<Latency> {
  const samples: number[] = [];
  for (let i = 0; i < QUERIES; i++) {
    const cursor = 1 + Math.floor((i / QUERIES) * edges);
    const begin = performance.now();
    const page = await store.usedBy(artifactId, { cursor, limit: LIMITS.pageMax });
    JSON.stringify(page.items);
    samples.push(performance.now() - begin);
    if (page.total !== edges || page.items.length === 0) throw new Error(`${page.items.length} edges of ${page.total}`);
  }
  return latencyOf(samples);
}

/** Times of submissions that pin as many artifacts as one may, each of which has so many consumers already. */
async function pinning(store: QueueStore, ids: readonly string[], consumers: number): Promise<Latency> {
  const consumer = job({ used_artifact_refs: ids.map((artifact_id) => ({ artifact_id, sha256: SHA256 })) });
  const samples: number[] = [];
  for (let i = 0; i < consumers + PINNING; i++) {
    const begin = performance.now();
    await store.submit(consumer, "workload");
    if (i >= consumers) samples.push(performance.now() - begin);
  }
  return latencyOf(samples);
}

/** What a reader of lineage waits for where an artifact has as many consumers as it may have. */
export const row: Row = {
  name: "lineage",
  async run(context: BenchContext): Promise<Result[]> {
    const edges = Math.max(500, Math.ceil(LIMITS.consumersPerArtifact * context.scale));
    const store = await openQueue(context.directory, { clock: systemClock, activeJobsMax: 1_000_000, leaseSeconds: 120 });
    try {
      const artifactId = "artifact_bench";
      const many = Array.from({ length: LIMITS.artifactUses }, (_, i) => `artifact_${i.toString(16).padStart(32, "0")}`);
      await producer(store, [artifactId, ...many]);
      const consumer = job({ used_artifact_refs: [{ artifact_id: artifactId, sha256: SHA256 }] });
      for (let made = 0; made < edges; made += 1_000) {
        await Promise.all(Array.from({ length: Math.min(1_000, edges - made) }, () => store.submit(consumer, "workload")));
      }
      const { p50, p99 } = await pages(store, artifactId, edges);
      const pins = await pinning(store, many, Math.ceil(100 * context.scale));
      const name = `page of ${LIMITS.pageMax} of an artifact's ${readable(edges)} consumers`;
      const line = { unit: "ms", yardstick: null };
      return [
        { ...line, name: `${name}, p50`, ours: p50, target: { atMost: 10 } },
        { ...line, name: `${name}, p99`, ours: p99, target: null },
        { ...line, name: `submission with ${readable(many.length)} pins, p50`, ours: pins.p50, target: null },
      ];
    } finally {
      await store.close();
    }
  },
};
