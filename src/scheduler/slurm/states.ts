import type { SchedulerPhase } from "../../domain/scheduler.ts";

/**
 * SLURM's states by their long names and, as `squeue -o %t` has them, short ones: squeue(1) and sacct(1), JOB STATE CODES, of 20.11 to 25.11.
 *
 * REVOKED is none: it says that another cluster of the federation has taken the job, and nothing of what became of it there.
 */
const PHASES: Readonly<Record<string, SchedulerPhase>> = {
  PENDING: "pending",
  PD: "pending",
  REQUEUED: "pending",
  RQ: "pending",
  REQUEUE_FED: "pending",
  RF: "pending",
  REQUEUE_HOLD: "pending",
  RH: "pending",
  RESV_DEL_HOLD: "pending",
  RD: "pending",
  SPECIAL_EXIT: "pending",
  SE: "pending",
  EXPEDITING: "pending",
  CONFIGURING: "allocated",
  CF: "allocated",
  COMPLETING: "allocated",
  CG: "allocated",
  RESIZING: "allocated",
  RS: "allocated",
  STAGE_OUT: "allocated",
  SO: "allocated",
  RUNNING: "running",
  R: "running",
  SUSPENDED: "running",
  S: "running",
  STOPPED: "running",
  ST: "running",
  SIGNALING: "running",
  SI: "running",
  COMPLETED: "completed",
  CD: "completed",
  CANCELLED: "canceled",
  CA: "canceled",
  BOOT_FAIL: "failed",
  BF: "failed",
  DEADLINE: "failed",
  DL: "failed",
  FAILED: "failed",
  F: "failed",
  NODE_FAIL: "failed",
  NF: "failed",
  OUT_OF_MEMORY: "failed",
  OOM: "failed",
  PREEMPTED: "failed",
  PR: "failed",
  TIMEOUT: "failed",
  TO: "failed",
};

/** The phase of a state as SLURM writes it; sacct adds who cancelled (`CANCELLED by 1000`). */
export function phaseOf(rawState: string): SchedulerPhase {
  const word = rawState.trim().split(/\s/, 1)[0]!;
  return Object.hasOwn(PHASES, word) ? PHASES[word]! : "unknown";
}
