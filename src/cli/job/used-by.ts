import { CLUSTER } from "../cluster-option.ts";
import { EDGE_PAGE, moreOf } from "../edge-page-options.ts";
import { clusterOfArtifact } from "../find-record.ts";
import { printPage } from "../print/page.ts";
import { artifactId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the jobs that use an artifact",
  details: "In the order in which they were submitted. As long as one of them is kept, so is the job that left the artifact.",
  positionals: { artifact: artifactId },
  flags: { cluster: CLUSTER, ...EDGE_PAGE },
  examples: [["job used-by artifact_0123456789abcdef0123456789abcdef", "who consumes it"]],
  async run({ flags, args, io, json, relay }) {
    const cluster = await clusterOfArtifact({ io, relay }, flags.cluster, args.artifact);
    const { cursor, limit } = flags;
    const page = await cluster.lineage.usedBy(args.artifact, { limit, ...(cursor === undefined ? {} : { cursor }) });
    return printPage({ io, json }, page, {
      header: ["USED BY", { spare: "SUBMITTED" }, { spare: "KNOWN BY" }, { spare: "ARGUMENT" }],
      rows: () =>
        page.used_by.map((edge) => [
          edge.consumer_job_id,
          edge.created_at,
          edge.provenance?.evidence ?? null,
          edge.provenance?.arg ?? null,
        ]),
      none: cursor === undefined ? "no job uses it" : "there are no more",
      notes: [moreOf(page, { shown: page.used_by.length, begun: cursor })],
    });
  },
});
