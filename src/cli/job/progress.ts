import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noneFrom, PAGE, restOf } from "../page-options.ts";
import { printPage } from "../print/page.ts";
import { progressBar, progressText, shareOf } from "../print/progress-text.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List what a job reported of its progress",
  details: "Every report, in order. job status shows the latest of each label.",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [["job progress job_0123456789abcdef0123456789abcdef", "its reports"]],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const page = await cluster.progress(id, { cursor: flags.cursor, limit: flags.limit });
    const bar = (share: number | null) => (share === null ? "" : progressBar(share, 20));
    return printPage({ io, json }, page, {
      header: ["AT", "", "PROGRESS"],
      rows: ({ forPeople, instant }) =>
        page.progress.map((report) =>
          forPeople
            ? [instant(report.created_at), bar(shareOf(report)), progressText(report)]
            : [report.created_at, report.label, report.current, report.total, report.unit, report.message],
        ),
      none: noneFrom(flags.cursor, "it has reported no progress"),
      notes: [restOf(page)],
    });
  },
});
