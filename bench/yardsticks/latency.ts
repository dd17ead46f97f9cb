import fs from "node:fs";
import path from "node:path";

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

/** Wall clock of this machine with a fraction of a millisecond: two processes compare theirs, and `date +%s%N` of a job. */
export const wallClock = (): number => performance.timeOrigin + performance.now();

/**
 * How long it takes to append 4 KiB to a file and to flush it with fsync(2), in milliseconds: below 0.3 ms the directory is hardly on
 * a disk.
 */
export function fsyncLatency(directory: string, runs = 300): Latency {
  const file = path.join(directory, "fsync-probe");
  const fd = fs.openSync(file, "w");
  try {
    const block = Buffer.alloc(4_096, 1);
    const samples: number[] = [];
    for (let i = 0; i < runs; i++) {
      const from = performance.now();
      fs.writeSync(fd, block);
      fs.fsyncSync(fd);
      samples.push(performance.now() - from);
    }
    return latencyOf(samples);
  } finally {
    fs.closeSync(fd);
    fs.rmSync(file, { force: true });
  }
}
