import type { Artifact } from "../../domain/artifact.ts";
import type { JobStatus } from "../../domain/views.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noneFrom, PAGE, restOf } from "../page-options.ts";
import { printPage } from "../print/page.ts";
import { bytesText } from "../print/quantities.ts";
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
    return printPage({ io, json }, page, {
      header: ["ARTIFACT", { spare: "KIND" }, { spare: "SIZE" }, { spare: "SHA-256" }, { spare: "ATTEMPT" }, { keepsEnd: "NAME" }],
      rows: ({ forPeople }) =>
        page.artifacts.map((a) => [
          a.artifact_id,
          a.kind,
          forPeople ? `${bytesText(a.size_bytes)}${inPlace(a) ? ", in place" : ""}` : a.size_bytes,
          forPeople ? `${a.sha256.slice(0, 16)}…` : a.sha256,
          attemptOf(a),
          a.name,
        ]),
      none: noneFrom(flags.cursor, "it has left no files"),
      notes: json ? [] : [inputsOf(await cluster.status(id)), restOf(page)],
    });
  },
});

const inputsOf = ({ inputs }: Pick<JobStatus, "inputs">): string | null =>
  inputs.length === 0 ? null : `inputs: ${inputs.map(({ name, artifact_id }) => `${name} ${artifact_id}`).join(", ")}`;

/** Whether it was not copied: its record names the file that the job wrote. */
const inPlace = ({ uri }: Artifact): boolean => uri.startsWith("file:");

/** The attempt that left it; null where the record does not say. */
const attemptOf = ({ metadata }: Artifact): number | null => (typeof metadata["attempt"] === "number" ? metadata["attempt"] : null);
