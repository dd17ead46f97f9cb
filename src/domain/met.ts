import { errorRule, isErrorCode } from "./errors.ts";
import type { WorkerStatus } from "./views.ts";

/** Where a worker is to be met by desktops, and is not. */
export interface NotMet {
  readonly place: string;
  /** What keeps it away, for people; null where that is not known yet. */
  readonly reason: string | null;
  /** More of it, where there is more to say. */
  readonly detail?: string;
}

/** The first place where a worker should be met and is not; null where it is everywhere that it should be. */
export function notMet({ met_at, frp }: Pick<WorkerStatus, "met_at" | "frp">): NotMet | null {
  if (met_at != null && !met_at.registered)
    return met_at.detail == null
      ? { place: met_at.place, reason: met_at.reason }
      : { place: met_at.place, reason: met_at.reason, detail: met_at.detail };
  if (frp != null && !frp.reached) return { place: `frps at ${frp.server}`, reason: frp.reason };
  return null;
}

/** Whether what keeps it away may be over by itself; a certificate or a token that is refused is not. */
export const mayYetBeMet = ({ reason }: NotMet): boolean => reason === null || !isErrorCode(reason) || errorRule(reason).retryable;

/** In one sentence. */
export const notMetText = ({ place, reason, detail }: NotMet): string =>
  `the worker is not at ${place}${reason === null ? " yet" : `: ${reason}`}${detail === undefined ? "" : ` (${detail})`}`;
