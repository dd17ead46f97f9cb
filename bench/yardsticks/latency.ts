/** Latencies of one kind, in milliseconds. */
export interface Latency {
  readonly runs: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Summarize samples in milliseconds by nearest rank: p99 is a sample that at least 99 % do not exceed. */
export function latencyOf(samples: readonly number[]): Latency {
  if (samples.length === 0) throw new RangeError("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  const rank = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return { runs: sorted.length, p50: rank(0.5), p99: rank(0.99), max: sorted.at(-1)! };
}
