import fs from "node:fs";
import os from "node:os";

const TMPFS_MAGIC = 0x01021994; // statfs(2)

/** Whether a directory lies in memory, where a flush costs nothing and durable work cannot be measured. */
export const inMemory = (directory: string): boolean => fs.statfsSync(directory).type === TMPFS_MAGIC;

/** One line about the machine and its load. */
export function machineLine(): string {
  const cpus = os.cpus();
  const memory = (os.totalmem() / 2 ** 30).toFixed(0);
  const load = os.loadavg().map((value) => value.toFixed(2));
  return `${cpus.length} x ${cpus[0]?.model.trim() ?? os.arch()}, ${memory} GiB, ${os.type()} ${os.release()}, load ${load.join(" ")}`;
}
