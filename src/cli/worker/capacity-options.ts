import * as v from "valibot";
import type { Settings } from "../../config/settings.ts";
import { type Capacity, Slots } from "../../domain/endpoint.ts";
import { RelayError } from "../../domain/errors.ts";
import { JOB_KINDS } from "../job-words.ts";
import { type Reader, whole } from "../values.ts";
import { type FlagValues, list, option } from "../verb.ts";

/** `KIND=N` */
export const kindLimit: Reader<readonly [kind: (typeof JOB_KINDS)[number], limit: number]> = {
  label: "KIND=N",
  form: `KIND=N with one of ${JOB_KINDS.join(", ")} and a whole number from 1`,
  read(given) {
    const at = given.indexOf("=");
    const kind = JOB_KINDS.find((one) => one === given.slice(0, Math.max(0, at)));
    const limit = whole(1, 10_000).read(given.slice(at + 1));
    return kind === undefined || limit === undefined ? undefined : [kind, limit];
  },
};

/** A worker without a slot for control queries, or without one for jobs, is none. */
export const slots: Reader<number> = {
  ...whole(2, 10_000),
  form: `${whole(2, 10_000).form}: one slot at least for control queries, and one for jobs`,
};

export const SLOTS_DOC =
  "Slots: jobs at a time and those kept for control queries, so that 4 run 3 jobs at a time (with one kept, as by default)";
export const CONTROL_DOC = "How many of the slots are kept for control queries; jobs have the others";

/** How much a worker runs at a time, where it is started. */
export const CAPACITY = {
  concurrency: option(slots, SLOTS_DOC),
  "control-query-concurrency": option(whole(1, 10_000), CONTROL_DOC),
  "kind-concurrency": list(kindLimit, "Jobs of one kind at a time"),
} as const;

interface CapacityFlags {
  readonly concurrency: number | undefined;
  readonly control: number | undefined;
  readonly kinds: readonly (readonly [string, number])[];
}

/** The configured slots with what the options change. @throws RelayError usage when the result does not hold together */
export function capacityWith(configured: Slots, { concurrency, control, kinds }: CapacityFlags): Slots {
  const result = v.safeParse(Slots, {
    concurrency: concurrency ?? configured.concurrency,
    control_query_concurrency: control ?? configured.control_query_concurrency,
    kind_concurrency: { ...configured.kind_concurrency, ...Object.fromEntries(kinds) },
  });
  if (!result.success) throw new RelayError("usage", result.issues[0].message);
  return result.output;
}

type CapacityOptions = FlagValues<typeof CAPACITY>;

/** The same from the options of a verb that starts a worker. */
export const capacityOf = (configured: Slots, flags: CapacityOptions): Slots =>
  capacityWith(configured, {
    concurrency: flags.concurrency,
    control: flags["control-query-concurrency"],
    kinds: flags["kind-concurrency"],
  });

/** What a worker has under way at a time: the slots on its own host, and what the settings let it have in allocations. */
export const workerCapacity = (slots: Slots, settings: Pick<Settings, "scheduler_jobs_max">): Capacity => ({
  ...slots,
  scheduler_jobs: settings.scheduler_jobs_max,
});

/** The options as words of a command line that says the same. */
export const capacityWords = (flags: CapacityOptions): string[] => [
  ...(flags.concurrency === undefined ? [] : ["--concurrency", String(flags.concurrency)]),
  ...(flags["control-query-concurrency"] === undefined ? [] : ["--control-query-concurrency", String(flags["control-query-concurrency"])]),
  ...flags["kind-concurrency"].flatMap(([kind, limit]) => ["--kind-concurrency", `${kind}=${limit}`]),
];
