import fs from "node:fs";
import path from "node:path";
import type { ClusterClient } from "../../api/client.ts";
import type { Artifact } from "../../domain/artifact.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { clusterOfArtifact, findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import type { CliIo } from "../io.ts";
import { unusable } from "../local-file.ts";
import { resolveLocal } from "../local-path.ts";
import { bytesText } from "../print/quantities.ts";
import { oneLine } from "../print/safe-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { identifier, type Reader, text } from "../values.ts";
import { type Call, defineVerb, option, optional } from "../verb.ts";
import { fetchArtifact, replaceable } from "./fetched-file.ts";
import { artifactNamed } from "./outputs.ts";

const artifactOrJob: Reader<string> = {
  ...identifier("ARTIFACT|JOB", "an artifact"),
  form: "the id of an artifact, or of a job with the name of a file after it",
};

export const verb = defineVerb({
  summary: "Fetch a file that a job left",
  details:
    "With -o the file appears whole and verified by its SHA-256, or not at all; a fetch that breaks off goes on where it was. -o - writes to standard " +
    "output. Without -o the record is printed. A file of a job is also named by the job and its name, as job list-artifacts shows it; of several attempts that left one of that " +
    "name, the last one's is meant. job fetch brings all files of a job.",
  positionals: { artifact: artifactOrJob, name: optional(text("NAME")) },
  flags: { cluster: CLUSTER, output: option(text("FILE"), "Where to put it: a file, a directory, or - for standard output", "o") },
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
      else await printFields(io.stdout, fieldsOf(artifact));
      return EXIT.ok;
    }
    if (flags.output === "-" && json) throw new RelayError("usage", "--json and -o - exclude each other");
    const target = flags.output === "-" ? null : placeFor(io, flags.output, artifact);
    await interruptible(
      io,
      () => (target === null ? null : `interrupted; ${target} was not touched`),
      (signal) => fetchArtifact(io, cluster, artifact, target, `-o ${flags.output}`, signal),
    );
    if (target !== null) {
      if (json) await printJson(io.stdout, { ...artifact, path: target });
      else await io.stdout.write(`${io.stdout.isTerminal ? oneLine(target) : target}\n`);
    }
    return EXIT.ok;
  },
});

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

const directoryAt = (file: string): boolean => fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;

function placeFor(io: CliIo, typed: string, artifact: Artifact): string {
  try {
    return targetOf(io, typed, artifact);
  } catch (error) {
    throw unusable(`-o ${typed}`, error);
  }
}

/** The file to write: the one named, or one with the artifact's own last name in the directory that is named. */
function targetOf(io: CliIo, typed: string, artifact: Artifact): string {
  if (typed === "") throw new RelayError("usage", "-o needs the name of a file or directory");
  const given = resolveLocal(io, typed);
  const isDirectory = directoryAt(given);
  if (!isDirectory) {
    if (typed.endsWith("/")) throw new RelayError("local_file_unusable", `-o ${typed}: that is not a directory`);
    if (!directoryAt(path.dirname(given))) {
      throw new RelayError("local_file_unusable", `-o ${typed}: there is no directory ${path.dirname(typed)}`);
    }
    return replaceable(given, typed);
  }
  const name = path.posix.basename(artifact.name);
  if (name === "" || name === "." || name === ".." || name.includes("\0")) {
    throw new RelayError("usage", `${JSON.stringify(artifact.name)} is no name for a file`, {}, "name the file with -o FILE");
  }
  return replaceable(path.join(given, name), typed);
}
