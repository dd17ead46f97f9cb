import { LIMITS } from "../../domain/limits.ts";
import { CLUSTER } from "../cluster-option.ts";
import { JOB_KINDS, JOB_STATES } from "../job-words.ts";
import { printPage } from "../print/page.ts";
import { oneOf, whole } from "../values.ts";
import { defineVerb, list, option, optionOr } from "../verb.ts";

export const verb = defineVerb({
  summary: "List recent jobs, newest first",
  details: "The jobs that stand for files of --input are left out, unless --kind input_ingest asks for them.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    state: list(oneOf(...JOB_STATES), "Only jobs in this state"),
    kind: option(oneOf(...JOB_KINDS), "Only jobs of this kind"),
    before: option(whole(1, Number.MAX_SAFE_INTEGER), "Only jobs with a smaller sequence number"),
    limit: optionOr(whole(1, LIMITS.pageMax), 20, "Jobs at most"),
  },
  examples: [
    ["job list", "the last 20 jobs"],
    ["job list --state running --state queued", "what is not over"],
  ],
  async run({ flags, io, json, relay }) {
    const cluster = await relay.cluster(flags.cluster);
    const page = await cluster.jobs({
      ...(flags.state.length === 0 ? {} : { state: flags.state }),
      // What --input has staged is no work of anybody's.
      ...(flags.kind === undefined ? { inputs: false } : { kind: flags.kind }),
      ...(flags.before === undefined ? {} : { before: flags.before }),
      limit: flags.limit,
    });
    return printPage({ io, json }, page, {
      header: ["JOB", "STATE", { spare: "KIND" }, "SUBMITTED", "WHAT"],
      rows: ({ instant }) => page.jobs.map((job) => [job.job_id, job.state, job.kind, instant(job.created_at), job.title]),
      none:
        flags.state.length > 0 || flags.kind !== undefined || flags.before !== undefined
          ? "no such job was found"
          : `${cluster.name} has no jobs yet`,
      notes: [page.next_before === null ? null : `older ones: --before ${page.next_before}`],
    });
  },
});
