import path from "node:path";
import { inAttempt } from "../../../execution/own-place.ts";
import { FILES } from "../../../execution/spool-records.ts";
import { writeFileAtomic } from "../../../lib/files/atomic-file.ts";
import { readRegular } from "../../../lib/files/regular-file.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";

const MAX_BYTES = 16 * 1024;

/** What a submission asks of a provider, with a refusal written down in the attempt's directory: the next worker has not heard the command. */
export const remembering = (
  provider: Pick<SchedulerProvider, "name" | "submit" | "find">,
  directory: string,
): Pick<SchedulerProvider, "name" | "submit" | "find"> => ({
  name: provider.name,
  find: (marker, lookup) => provider.find(marker, lookup),
  async submit(job) {
    const outcome = await provider.submit(job);
    if (outcome.kind === "refused")
      inAttempt(directory, (place) => writeFileAtomic(path.join(place, FILES.refusal), outcome.said.slice(0, MAX_BYTES / 4)), undefined);
    return outcome;
  },
});

/** In which words an earlier worker's submit command has refused; null where nobody knows that it has. */
export function refusalIn(directory: string): string | null {
  const read = inAttempt(directory, (place) => readRegular(path.join(place, FILES.refusal), MAX_BYTES), "absent");
  return typeof read === "string" ? null : read.text;
}
