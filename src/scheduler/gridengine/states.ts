import type { SchedulerPhase } from "../../domain/scheduler.ts";

/**
 * The phase of a state as qstat writes it, one letter for each of its parts (sge_status(5), qstat(1)): `qw`, `hqw`, `Eqw`, `t`, `r`, `Rr`, `dr`, `ts`, `S`, `T`, `N`.
 * A job that is in error (E) waits until somebody clears that; one that is to be deleted (d) is still there.
 */
export function phaseOf(state: string): SchedulerPhase {
  if (state === "" || /[^a-zA-Z]/.test(state) || state.includes("z")) return "unknown";
  if (state.includes("q") || (state.includes("w") && !/[rt]/.test(state))) return "pending";
  if (/[rsSTNP]/.test(state)) return "running";
  if (state.includes("t")) return "allocated";
  return state === "d" ? "running" : "unknown";
}
