import { readSpec } from "../../execution/attempt-dir.ts";
import { homeElsewhere } from "../../execution/other-copy.ts";
import type { StartRecord } from "../../execution/spool-records.ts";
import type { Identity } from "../../lib/system/process-identity.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext, WorkerLimits } from "./context.ts";
import { settleUnstarted } from "./settlement.ts";

/** What a new worker found of an attempt that has started. */
export const recoveredEvent = (lives: boolean, { attempt }: Fence) =>
  lives
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

/**
 * End an attempt whose shim and processes belong to another installation, of which this one is a copy: they are neither waited for nor ended. False where
 * they belong to this one, or there are none.
 *
 * @param known the shim that the queue has on record
 */
export async function settledAsCopy(
  context: WorkerContext,
  fence: Fence,
  known: Identity | null,
  start: StartRecord | "torn" | null,
): Promise<boolean> {
  const shim = known ?? (start !== null && start !== "torn" && start.claimed_by === "shim" ? start.shim : null);
  const home = homeElsewhere({ ...fence, spool: context.spoolDir, shim });
  if (home === null) return false;
  const why = `it runs in ${home}, an installation of which this one is a copy, and is left alone; how it ends is known there`;
  await settleUnstarted(context, fence, "outcome_unknown", why);
  return true;
}
