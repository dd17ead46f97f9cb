import { ManyClusters } from "../../test/cli/many-clusters.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { latencyOf } from "../yardsticks/latency.ts";

const CLUSTERS = 32;
/** How long one may be dead before what it costs is looked at, in milliseconds: by then its pings are overdue, and its link is tried again. */
const DEAD_MS = 45_000;

const WORK = {
  "list of jobs": (many: ManyClusters, cluster: string) => many.ask(`/clusters/${cluster}/jobs?limit=20`),
  submission: (many: ManyClusters, cluster: string) =>
    many.ask(`/clusters/${cluster}/jobs`, { cluster, kind: "command", spec: { argv: ["true"] } }),
  "state of all links": (many: ManyClusters) => many.ask("/links"),
} as const;
type Work = keyof typeof WORK;

/** Ask every dead cluster again as soon as it has answered, four at a time, until that is enough. */
async function askTheDead(many: ManyClusters, enough: AbortSignal): Promise<void> {
  const asking = Array.from({ length: 4 * many.dead.length }, async (_, at) => {
    while (!enough.aborted) await many.ask(`/clusters/${many.dead[at % many.dead.length]}/jobs`);
  });
  await Promise.all(asking);
}

/** Medians in milliseconds over all that live, of several desks in turns. */
async function medians(desks: readonly ManyClusters[], what: Work, rounds: number): Promise<number[]> {
  const samples = desks.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const cluster of desks[0]!.living) {
      for (const [at, many] of desks.entries()) {
        const began = performance.now();
        const { status, body } = await WORK[what](many, cluster);
        if (status >= 300) throw new Error(body);
        samples[at]!.push(performance.now() - began);
      }
    }
  }
  return samples.map((all) => latencyOf(all).p50);
}

/** Whether those that live are slower because five others are dead: hung, swallowed by the path, refused, mute, and without a worker. Beside a desk whose clusters all live, in turns. */
export const row: Row = {
  name: "dead-clusters",
  async run({ scale, note }: BenchContext): Promise<Result[]> {
    await using alive = await ManyClusters.start(CLUSTERS);
    await using beside = await ManyClusters.start(CLUSTERS);
    const desks = [alive, beside];
    // A daemon is up all day: what it does then is compiled.
    for (const what of Object.keys(WORK) as Work[]) await medians(desks, what, 5);
    await beside.die();
    note("five of them die");
    await Bun.sleep(DEAD_MS);
    const enough = new AbortController();
    const asking = askTheDead(beside, enough.signal);
    const results: Result[] = [];
    for (const what of Object.keys(WORK) as Work[]) {
      const [value, ours] = (await medians(desks, what, Math.max(2, Math.round(10 * scale)))) as [number, number];
      results.push({
        name: `${what}, ${CLUSTERS} clusters, 5 of them dead`,
        unit: "ms",
        yardstick: { name: "all of them alive", value },
        ours,
        // The links take less than a millisecond, and say more of those that are tried again.
        target: what === "state of all links" ? { overYardstickAtMost: 1 } : { ratioAtMost: 1.2 },
      });
    }
    enough.abort();
    await asking;
    return results;
  },
};
