import type { Clock } from "../../lib/waiting/clock.ts";
import { FILES } from "../spool-records.ts";
import type { ShimLog } from "./shim-log.ts";

const SOON_MS = 250;
const LATER_MS = 1_000;

export interface RecordExitOptions {
  /** Whether the attempt's directory, the one that was claimed, still has its name. May throw when that cannot be seen. */
  readonly isThere: () => boolean;
  /** Writes exit.json; false when it is there already. May be called again after it threw. */
  readonly commit: () => boolean;
  readonly clock: Clock;
  readonly log: Pick<ShimLog, "note">;
  /** Milliseconds for which it is tried every 250 ms; afterwards, every second. */
  readonly patienceMs: number;
  readonly pause?: (ms: number) => Promise<unknown>;
}

/**
 * Record the end of an attempt, however long the system refuses to: nobody else knows it, and the shim has nothing else to do. Never
 * throws. Gives up only when the attempt's directory is gone, or another one has its name: nobody would read of it there.
 */
export async function recordExit({ isThere, commit, clock, log, patienceMs, pause = Bun.sleep }: RecordExitOptions): Promise<void> {
  const patientUntil = clock.monotonic() + patienceMs;
  let last = "";
  for (;;) {
    if (isGone(isThere)) {
      log.note(`${FILES.exit} not written: the attempt's directory is gone, or another one has its name`);
      return;
    }
    try {
      if (!commit()) log.note(`${FILES.exit} was there already`);
      else if (last !== "") log.note(`${FILES.exit} written`);
      return;
    } catch (error) {
      if (String(error) !== last) log.note(`${FILES.exit} not written, trying again: ${String(error)}`);
      last = String(error);
    }
    await pause(clock.monotonic() < patientUntil ? SOON_MS : LATER_MS);
  }
}

/** Only what is known to be gone: what cannot be looked at may come back. */
function isGone(isThere: RecordExitOptions["isThere"]): boolean {
  try {
    return !isThere();
  } catch {
    return false;
  }
}
