import type { Slots } from "../../domain/endpoint.ts";

type Own = Pick<Slots, "concurrency" | "control_query_concurrency">;

/** Slots that jobs of users can have: one that is kept for control queries takes none of their work. */
export const forJobs = ({ concurrency, control_query_concurrency }: Own): number => concurrency - control_query_concurrency;

/** `4: 3 for jobs, 1 for control queries` */
export const slotsText = (slots: Own): string =>
  `${slots.concurrency}: ${forJobs(slots)} for jobs, ${slots.control_query_concurrency} for control queries`;
