import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { EDGE_PAGE, noteMore } from "../edge-page-options.ts";
import { clusterOfArtifact } from "../find-record.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
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
    if (json) await printJson(io.stdout, page);
    else {
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["USED BY", { spare: "SUBMITTED" }, { spare: "KNOWN BY" }, { spare: "ARGUMENT" }],
        page.used_by.map((edge) => [
          edge.consumer_job_id,
          edge.created_at,
          edge.provenance?.evidence ?? null,
          edge.provenance?.arg ?? null,
        ]),
      );
      await noteMore(io.stderr, page, { shown: page.used_by.length, begun: cursor });
    }
    return EXIT.ok;
  },
});
