import { CLUSTER } from "../cluster-option.ts";
import { EDGE_PAGE, moreOf } from "../edge-page-options.ts";
import { findJob } from "../find-record.ts";
import { printPage } from "../print/page.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the artifacts that a job uses",
  details:
    "What --used-artifact and --input pinned when it was submitted, which does not change any more. job used-by leads the other way, job provenance has both in one document.",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...EDGE_PAGE },
  examples: [["job used-artifacts job_0123456789abcdef0123456789abcdef", "what it consumes, and which jobs left that"]],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const { cursor, limit } = flags;
    const page = await cluster.lineage.usedArtifacts(id, { limit, ...(cursor === undefined ? {} : { cursor }) });
    return printPage({ io, json }, page, {
      header: ["ARTIFACT", "LEFT BY", { spare: "SHA-256" }, { spare: "KNOWN BY" }, { spare: "ARGUMENT" }],
      rows: ({ forPeople }) =>
        page.used_artifacts.map((edge) => [
          edge.artifact_id,
          edge.producer_job_id,
          forPeople ? `${edge.sha256.slice(0, 16)}…` : edge.sha256,
          edge.provenance?.evidence ?? null,
          edge.provenance?.arg ?? null,
        ]),
      none: cursor === undefined ? "it uses no artifacts" : "there are no more",
      notes: [moreOf(page, { shown: page.used_artifacts.length, begun: cursor })],
    });
  },
});
