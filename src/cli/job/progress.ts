import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noteRest, PAGE } from "../page-options.ts";
import { progressBar, progressText, shareOf } from "../print/progress-text.ts";
import { instantCell } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
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
    if (json) await printJson(io.stdout, page);
    else {
      const now = io.clock.now();
      const bar = (share: number | null) => (share === null ? "" : progressBar(share, 20));
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["AT", "", "PROGRESS"],
        page.progress.map((report) =>
          io.stdout.isTerminal
            ? [instantCell(io.stdout, report.created_at, now), bar(shareOf(report)), progressText(report)]
            : [report.created_at, report.label, report.current, report.total, report.unit, report.message],
        ),
      );
      await noteRest(io.stderr, page);
    }
    return EXIT.ok;
  },
});
