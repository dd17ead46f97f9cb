import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Latency, latencyOf } from "./yardsticks/latency.ts";

const TMPFS_MAGIC = 0x01021994; // statfs(2)

/** Whether a directory lies in memory, where a flush costs nothing and durable work cannot be measured. */
export const inMemory = (directory: string): boolean => fs.statfsSync(directory).type === TMPFS_MAGIC;

/** Latency of a 4 KiB append with fsync(2) in a directory, in milliseconds. */
export function fsyncLatency(directory: string, count = 300): Latency {
  const file = path.join(directory, "fsync-probe");
  const fd = fs.openSync(file, "w");
  const block = Buffer.alloc(4096, 1);
  const samples: number[] = [];
  try {
    for (let i = 0; i < count; i++) {
      const begin = performance.now();
      fs.writeSync(fd, block);
      fs.fsyncSync(fd);
      samples.push(performance.now() - begin);
    }
  } finally {
    fs.closeSync(fd);
    fs.rmSync(file);
  }
  return latencyOf(samples);
}

/** One line about the machine and its load. */
export function machineLine(): string {
  const cpus = os.cpus();
  const memory = (os.totalmem() / 2 ** 30).toFixed(0);
  const load = os.loadavg().map((value) => value.toFixed(2));
  return `${cpus.length} x ${cpus[0]?.model.trim() ?? os.arch()}, ${memory} GiB, ${os.type()} ${os.release()}, load ${load.join(" ")}`;
}
