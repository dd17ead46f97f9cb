import fs from "node:fs";
import type { Exposition } from "../text/exposition.ts";
import { softLimit } from "./process-limits.ts";

/** What every process shows of itself, by the names that Prometheus' own clients give it. */
export function addProcess(out: Exposition): Exposition {
  const { user, system } = process.cpuUsage();
  return out
    .one("process_cpu_seconds_total", "counter", "Time on a processor, user's and system's", (user + system) / 1e6)
    .one("process_resident_memory_bytes", "gauge", "Resident memory", process.memoryUsage.rss())
    .one("process_open_fds", "gauge", "Descriptors that are open", openDescriptors())
    .one("process_max_fds", "gauge", "Descriptors that may be open", softLimit("Max open files"))
    .one("process_start_time_seconds", "gauge", "When the process began, since the epoch", performance.timeOrigin / 1_000);
}

/** null where the system does not say. */
function openDescriptors(): number | null {
  try {
    return fs.readdirSync("/proc/self/fd").length;
  } catch {
    return null;
  }
}
