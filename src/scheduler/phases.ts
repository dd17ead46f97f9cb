import type { SchedulerPhase } from "../domain/scheduler.ts";

/** Whether it is one of those that a job does not leave. */
export const isEnd = (phase: SchedulerPhase): boolean => phase === "completed" || phase === "failed" || phase === "canceled";
