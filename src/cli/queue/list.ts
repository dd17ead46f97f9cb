import { LIMITS } from "../../domain/limits.ts";
import { CLUSTER } from "../cluster-option.ts";
import { JOB_KINDS, JOB_STATES } from "../job-words.ts";
import { printPage } from "../print/page.ts";
import { oneOf, whole } from "../values.ts";
import { defineVerb, list, option, optionOr, toggle } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the queue in the order of submission",
  details: "Filters apply inside a window over all jobs; how much of the queue was looked at is said on standard error.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    state: list(oneOf(...JOB_STATES), "Only jobs in this state"),
    kind: option(oneOf(...JOB_KINDS), "Only jobs of this kind"),
    "include-terminal": toggle("Jobs that are over, too"),
    cursor: optionOr(whole(1, Number.MAX_SAFE_INTEGER), 1, "Sequence number to begin at"),
    limit: optionOr(whole(1, LIMITS.pageMax), LIMITS.pageDefault, "Jobs at most"),
    "scan-limit": optionOr(whole(1, LIMITS.queueScanMax), LIMITS.queueScanDefault, "Jobs to look at, at most"),
  },
  examples: [
    ["queue list", "what is queued or runs"],
    ["queue list --include-terminal --kind command --limit 500 --json", "everything of one kind, for a program"],
  ],
  async run({ flags, io, json, relay }) {
    const cluster = await relay.cluster(flags.cluster);
    const page = await cluster.queue({
      ...(flags.state.length === 0 ? {} : { state: flags.state }),
      ...(flags.kind === undefined ? {} : { kind: flags.kind }),
      include_terminal: flags["include-terminal"],
      cursor: flags.cursor,
      limit: flags.limit,
      scan_limit: flags["scan-limit"],
    });
    const { source_next_cursor: next, source_total: total } = page;
    return printPage({ io, json }, page, {
      header: ["SEQ", "JOB", "STATE", { spare: "KIND" }, { spare: "LANE" }, "SUBMITTED", "WHAT"],
      rows: ({ instant }) =>
        page.jobs.map((job) => [job.sequence, job.job_id, job.state, job.kind, job.lane, instant(job.created_at), job.title]),
      none:
        flags.state.length > 0 || flags.kind !== undefined || flags.cursor > 1 || flags["include-terminal"] || next !== null
          ? "no such job was found"
          : "nothing is queued or runs",
      notes: [next === null ? null : `there is more (${total} jobs in all): --cursor ${next}`],
    });
  },
});
