import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noneFrom, PAGE, restOf } from "../page-options.ts";
import { printPage } from "../print/page.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the attempts of a job",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [["job attempts job_0123456789abcdef0123456789abcdef", "when each began and how it ended"]],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const page = await cluster.attempts(id, { cursor: flags.cursor, limit: flags.limit });
    return printPage({ io, json }, page, {
      header: ["ATTEMPT", "STATE", "STARTED", "ENDED", "OUTCOME", "MESSAGE"],
      rows: ({ instant }) =>
        page.attempts.map((a) => [
          a.attempt,
          a.state,
          instant(a.started_at),
          instant(a.ended_at),
          a.outcome?.reason ?? null,
          a.outcome?.message ?? null,
        ]),
      none: noneFrom(flags.cursor, "it was not attempted yet"),
      notes: [restOf(page)],
    });
  },
});
