import { readExit, readSpec } from "../../execution/attempt-dir.ts";
import { isAlive } from "../../lib/process-identity.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerLimits } from "./context.ts";
import type { ShimClaim } from "./lost-shim.ts";

/** What a new worker found of an attempt that has started. */
export function recoveredEvent({ shim }: ShimClaim, { attempt }: Fence, directory: string) {
  const lives = shim !== null && isAlive(shim) && [null, "torn"].includes(readExit(directory) as null | "torn");
  return lives
    ? ({
        event_type: "execution.adopted",
        message: `A new worker looks after attempt ${attempt}, which goes on.`,
        payload: { attempt },
      } as const)
    : ({
        event_type: "execution.restart_reconciled",
        message: `A new worker found that attempt ${attempt} had ended meanwhile.`,
        payload: { attempt },
      } as const);
}

/** The bytes that a shim of the attempt keeps of one stream: what it was told, as long as nobody else has written that down, or what the worker would tell it. */
export function keptMaxOf(limits: WorkerLimits, recovered: string | null): number {
  let told = 0;
  try {
    told = recovered === null ? 0 : (readSpec(recovered)?.quota.stream_bytes ?? 0);
  } catch {
    // What it says cannot be read now.
  }
  return Math.max(limits.logStreamBytes, told);
}
