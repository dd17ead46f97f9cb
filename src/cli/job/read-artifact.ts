import type { ClusterClient } from "../../api/client.ts";
import type { Artifact } from "../../domain/artifact.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { clusterOfArtifact, findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import { unusable } from "../local-file.ts";
import { isOccupied, OVERWRITE, refuseOthers } from "../overwrite.ts";
import { bytesText } from "../print/quantities.ts";
import { oneLine } from "../print/safe-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { artifactOrJob, text } from "../values.ts";
import { type Call, defineVerb, option, optional } from "../verb.ts";
import { fetchArtifact, holdsArtifact } from "./fetched-file.ts";
import { artifactNamed } from "./outputs.ts";
import { targetFile } from "./target-file.ts";

export const verb = defineVerb({
  summary: "Fetch a file that a job left",
  details:
    "With -o the file appears whole and verified by its SHA-256, or not at all; a fetch that breaks off goes on where it was. One that is there with the same content is left alone, another one is replaced with --overwrite only. -o - writes to standard " +
    "output. Without -o the record is printed. A file of a job is also named by the job and its name, as job list-artifacts shows it; of several attempts that left one of that " +
    "name, the last one's is meant. job fetch brings all files of a job.",
  positionals: { artifact: artifactOrJob, name: optional(text("NAME")) },
  flags: {
    cluster: CLUSTER,
    output: option(text("FILE"), "Where to put it: a file, a directory, or - for standard output", "o"),
    ...OVERWRITE,
  },
  examples: [
    ["job read-artifact artifact_0123456789abcdef0123456789abcdef", "what it is"],
    ["job read-artifact artifact_0123456789abcdef0123456789abcdef -o result.csv", "the file itself"],
    ["job read-artifact artifact_0123456789abcdef0123456789abcdef -o - | head", "its first lines"],
    ["job read-artifact last result.csv -o .", "the file of that name that the last job left, into this directory"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { cluster, artifact } = await artifactMeant({ io, relay }, flags.cluster, args.artifact, args.name);
    if (flags.output === undefined) {
      if (json) await printJson(io.stdout, artifact);
      else {
        await printFields(io.stdout, fieldsOf(artifact));
        await io.stderr.write("the file itself: -o FILE, or -o - for standard output\n");
      }
      return EXIT.ok;
    }
    if (flags.output === "-" && json) throw new RelayError("usage", "--json and -o - exclude each other");
    const target = flags.output === "-" ? null : targetFile(io, flags.output, artifact.name);
    const there = target !== null && (await alreadyThere(target, artifact, flags.overwrite, `-o ${flags.output}`));
    if (!there) {
      await interruptible(
        io,
        () => (target === null ? null : `interrupted; ${target} was not touched`),
        (signal) => fetchArtifact(io, cluster, artifact, target, `-o ${flags.output}`, signal),
      );
    }
    if (target !== null) {
      if (json) await printJson(io.stdout, { ...artifact, path: target });
      else await io.stdout.write(`${io.stdout.isTerminal ? oneLine(target) : target}\n`);
    }
    return EXIT.ok;
  },
});

/** Whether the file has that very content. @throws RelayError state_conflict where it has another that is not to be replaced; local_file_unusable */
async function alreadyThere(target: string, artifact: Artifact, overwrite: boolean, where: string): Promise<boolean> {
  try {
    if (await holdsArtifact(target, artifact)) return true;
    if (!overwrite && isOccupied(target)) refuseOthers([target], "another -o");
    return false;
  } catch (error) {
    throw unusable(where, error);
  }
}

async function artifactMeant(
  asking: Pick<Call, "io" | "relay">,
  named: string | undefined,
  word: string,
  name: string | undefined,
): Promise<{ cluster: ClusterClient; artifact: Artifact }> {
  if (name !== undefined) {
    const { cluster, id } = await findJob(asking, named, word);
    return { cluster, artifact: await artifactNamed(cluster, id, name) };
  }
  if (word === "last" || word.startsWith("job_")) {
    throw new RelayError("usage", `which file of ${word}?`, {}, `clio-relay job read-artifact ${word} NAME, or job fetch ${word} for all`);
  }
  const cluster = await clusterOfArtifact(asking, named, word);
  return { cluster, artifact: await cluster.artifact(word) };
}

const fieldsOf = (artifact: Artifact) =>
  [
    ["artifact", artifact.artifact_id],
    ["job", artifact.job_id],
    ["kind", artifact.kind],
    ["name", artifact.name],
    ["size", `${artifact.size_bytes} (${bytesText(artifact.size_bytes)})`],
    ["sha256", artifact.sha256],
    ["created", artifact.created_at],
    ["uri", artifact.uri],
  ] as const;
