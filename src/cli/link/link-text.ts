import type { LinkStatus } from "../../api/link-views.ts";

/** Milliseconds as a person reads them. */
export const roundTripText = (ms: number | null): string | null => (ms === null ? null : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`);

/** `NAME is up: worker 1.2.3, 12 ms` */
export function linkSentence({ cluster, state, worker_version, round_trip_ms, detail }: LinkStatus): string {
  const facts = [worker_version === null ? null : `worker ${worker_version}`, roundTripText(round_trip_ms), detail].filter(
    (one) => one !== null,
  );
  return `${cluster} is ${state.replaceAll("_", " ")}${facts.length === 0 ? "" : `: ${facts.join(", ")}`}`;
}
