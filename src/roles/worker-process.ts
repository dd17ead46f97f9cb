import os from "node:os";
import path from "node:path";
import * as v from "valibot";
import type { ClusterClient } from "../api/client.ts";
import type { ProcessIdentity } from "../domain/attempt.ts";
import { ProcessIdentity as Schema } from "../domain/attempt.ts";
import { isRelayError, RelayError } from "../domain/errors.ts";
import { readSmallFile } from "../lib/files/regular-file.ts";
import { isAlive } from "../lib/system/process-identity.ts";

/** How long a worker may take to say who it is. */
const ANSWER_MS = 3_000;

const Owner = v.object(Schema.entries);

/**
 * The process that is the worker of a cluster of this machine: as it says itself, or where it does not answer, as the queue's
 * owner record says. Null when there is none.
 *
 * @param cluster its worker, on the worker's own socket
 */
export async function workerProcess(cluster: ClusterClient, coreDir: string): Promise<ProcessIdentity | null> {
  const identity = (await answering(cluster)) ?? recorded(coreDir);
  if (identity === null) return null;
  if (identity.hostname === os.hostname()) return isAlive(identity) ? identity : null;
  throw new RelayError("resource_ownership_refused", `the worker of ${cluster.name} runs on ${identity.hostname}, not on this machine`, {
    process: identity,
  });
}

async function answering(cluster: ClusterClient): Promise<ProcessIdentity | null> {
  const limit = AbortSignal.timeout(ANSWER_MS);
  try {
    return (await cluster.workers(limit)).workers[0]?.process ?? null;
  } catch (error) {
    if (limit.aborted || isRelayError(error, "desktop_unavailable") || isRelayError(error, "link_down")) return null;
    throw error;
  }
}

function recorded(coreDir: string): ProcessIdentity | null {
  try {
    const text = readSmallFile(path.join(coreDir, "owner.json"), 16 * 1024);
    const result = text === null ? null : v.safeParse(Owner, JSON.parse(text));
    return result?.success ? result.output : null;
  } catch {
    return null;
  }
}

/** Part of the time in which a process may end by itself. Windows has no TERM: the signal would cut it off in the middle of that. */
const UNSIGNALLED = process.platform === "win32" ? 0.5 : 0;

/** How long the system may take to end what is killed, in milliseconds. */
const KILLED_MS = 5_000;

/** End a process that does not end by itself. False where the system has not done so after 5 s. Only exactly this process is ever signalled. */
export async function killProcess(identity: ProcessIdentity): Promise<boolean> {
  if (isAlive(identity)) process.kill(identity.pid, "SIGKILL");
  for (const until = performance.now() + KILLED_MS; isAlive(identity); await Bun.sleep(20)) if (performance.now() > until) return false;
  return true;
}

/** Ask a process to end, and wait until it is gone. False when it still runs after so long. Only exactly this process is ever signalled. */
export async function terminate(identity: ProcessIdentity, withinMs: number): Promise<boolean> {
  const begun = performance.now();
  for (let signalled = false; isAlive(identity); await Bun.sleep(20)) {
    const passed = performance.now() - begun;
    if (passed > withinMs) return false;
    if (signalled || passed < withinMs * UNSIGNALLED) continue;
    process.kill(identity.pid, "SIGTERM");
    signalled = true;
  }
  return true;
}
