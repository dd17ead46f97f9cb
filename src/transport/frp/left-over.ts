import fs from "node:fs";
import * as v from "valibot";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { readSmallFile } from "../../lib/files/regular-file.ts";
import { type Identity, identify, isAlive } from "../../lib/system/process-identity.ts";

const MAX_BYTES = 4 * 1024;
const GONE_MS = 2_000;

const Record = v.object({ pid: v.number(), start_time: v.number(), boot_id: v.string(), hostname: v.string() });

/** Write down which process was started, so that whoever comes next can tell it from any other. */
export function recordProcess(file: string, pid: number): void {
  const identity = identify(pid);
  if (identity === null) fs.rmSync(file, { force: true });
  else writeFileAtomic(file, `${JSON.stringify(identity)}\n`);
}

/**
 * End the process of a record, with its group, where it is proven to be that one: by number, start time and boot. Anything else is left alone.
 *
 * @returns whether there was one
 */
export async function endLeftOver(file: string): Promise<boolean> {
  const left = recorded(file);
  fs.rmSync(file, { force: true });
  if (left === null || left.start_time === 0 || !isAlive(left)) return false;
  try {
    process.kill(process.platform === "win32" ? left.pid : -left.pid, "SIGKILL");
  } catch {
    return false;
  }
  for (const deadline = performance.now() + GONE_MS; isAlive(left) && performance.now() < deadline; ) await Bun.sleep(10);
  return true;
}

function recorded(file: string): Identity | null {
  try {
    const text = readSmallFile(file, MAX_BYTES);
    return text === null ? null : v.parse(Record, JSON.parse(text));
  } catch {
    // What cannot be read proves nothing.
    return null;
  }
}
