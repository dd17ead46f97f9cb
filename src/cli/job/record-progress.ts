import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { progressText } from "../print/progress-text.ts";
import { oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { PROGRESS, progressOf } from "../progress-options.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "Report progress of a job from outside of it",
  details: "From inside a job, emit progress does the same without any connection.",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PROGRESS },
  examples: [["job record-progress job_0123456789abcdef0123456789abcdef --label epoch --current 3 --total 10", "three of ten epochs"]],
  async run({ flags, args, io, json, relay }) {
    const report = progressOf(io, flags);
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const recorded = await cluster.recordProgress(id, report);
    if (json) await printJson(io.stdout, recorded);
    else await io.stdout.write(`${recorded.progress_id} ${oneLine(progressText(recorded))}\n`);
    return EXIT.ok;
  },
});
