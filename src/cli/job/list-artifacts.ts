import type { Artifact } from "../../domain/artifact.ts";
import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noteRest, PAGE } from "../page-options.ts";
import { bytesText } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the files that a job left",
  details:
    "On a terminal, a size with the words `in place` is that of a file which was too large to be copied (artifact_store_max_bytes): it lies where the job wrote it, and can be " +
    "fetched for as long as it stays as it was.",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [["job list-artifacts job_0123456789abcdef0123456789abcdef", "name, size and digest of each"]],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const page = await cluster.artifacts(id, { cursor: flags.cursor, limit: flags.limit });
    if (json) await printJson(io.stdout, page);
    else {
      const forPeople = io.stdout.isTerminal;
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["ARTIFACT", { spare: "KIND" }, { spare: "SIZE" }, { spare: "SHA-256" }, { spare: "ATTEMPT" }, { keepsEnd: "NAME" }],
        page.artifacts.map((a) => [
          a.artifact_id,
          a.kind,
          forPeople ? `${bytesText(a.size_bytes)}${inPlace(a) ? ", in place" : ""}` : a.size_bytes,
          forPeople ? `${a.sha256.slice(0, 16)}…` : a.sha256,
          attemptOf(a),
          a.name,
        ]),
      );
      const { inputs } = await cluster.status(id);
      if (inputs.length > 0)
        await io.stderr.write(`inputs: ${inputs.map(({ name, artifact_id }) => `${name} ${artifact_id}`).join(", ")}\n`);
      await noteRest(io.stderr, page);
    }
    return EXIT.ok;
  },
});

/** Whether it was not copied: its record names the file that the job wrote. */
const inPlace = ({ uri }: Artifact): boolean => uri.startsWith("file:");

/** The attempt that left it; null where the record does not say. */
const attemptOf = ({ metadata }: Artifact): number | null => (typeof metadata["attempt"] === "number" ? metadata["attempt"] : null);
