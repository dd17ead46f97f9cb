import type { Outcome } from "../../domain/job.ts";

/** The outcome of a job that was canceled while nothing of it ran. */
export const canceledOutcome = (message: string): Outcome => ({ reason: "canceled", exit_code: null, signal: null, message, residual: [] });
