import { isRelayError } from "../domain/errors.ts";
import { LOG_STREAMS } from "../domain/log.ts";
import type { Identity } from "../lib/system/process-identity.ts";
import { readExit, readStart } from "./attempt-dir.ts";
import type { ExitRecord, StartRecord } from "./spool-records.ts";

/** What is known of an attempt beside its directory, where the job may write what it likes. */
export interface ExitExpectation {
  /** Who claimed it; null where that is not known. */
  readonly shim: Identity | null;
  /** Whether its start.json was read before, so that its records are of a version that is understood. */
  readonly understood: boolean;
  /** Bytes that its shim keeps of one stream at most. */
  readonly keptMax: number;
}

/** Whether a claim is this shim's. */
export const isClaimOf = (start: StartRecord | "torn" | null, shim: Identity | null): boolean =>
  start !== null &&
  start !== "torn" &&
  start.claimed_by === "shim" &&
  shim !== null &&
  start.shim.pid === shim.pid &&
  start.shim.start_time === shim.start_time;

/**
 * exit.json of an attempt, as far as its shim can have written it: null where there is none, `torn` for one that cannot be read, that lies beside
 * another shim's claim, or that says more was kept than may be.
 *
 * @throws RelayError version_mismatch where shim and records are of a later version
 */
export function attemptExit(attemptDir: string, { shim, understood, keptMax }: ExitExpectation): ExitRecord | "torn" | null {
  try {
    const exit = readExit(attemptDir);
    if (exit === null || exit === "torn") return exit;
    if (LOG_STREAMS.some((stream) => exit.streams[stream].kept > keptMax)) return "torn";
    const start = shim === null ? null : readStart(attemptDir);
    return start === null || start === "torn" || isClaimOf(start, shim) ? exit : "torn";
  } catch (error) {
    if (understood && isRelayError(error, "version_mismatch")) return "torn";
    throw error;
  }
}
