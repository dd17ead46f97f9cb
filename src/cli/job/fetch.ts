import fs from "node:fs";
import path from "node:path";
import type { Artifact } from "../../domain/artifact.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import type { CliIo } from "../io.ts";
import { unusableDirectory } from "../local-file.ts";
import { resolveLocal } from "../local-path.ts";
import { OVERWRITE, refuseOthers } from "../overwrite.ts";
import { oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { jobId, text } from "../values.ts";
import { defineVerb, option } from "../verb.ts";
import { fetchArtifact, holdsArtifact } from "./fetched-file.ts";
import { outputsOf } from "./outputs.ts";
import { placeBelow } from "./place-below.ts";

export const verb = defineVerb({
  summary: "Fetch all files that a job left",
  details:
    "The files that --output kept, by their names, below the current directory or the one of -o; of several attempts that left one of a name, the last one's. Each appears " +
    "whole and verified by its SHA-256, or not at all. One that is there already with the same content is left alone; where another one is there, nothing is fetched, unless " +
    "--overwrite is given. Prints the paths.",
  positionals: { job: jobId },
  flags: {
    cluster: CLUSTER,
    output: option(text("DIR"), "The directory; it is made where there is none", "o"),
    ...OVERWRITE,
  },
  examples: [
    ["job fetch job_0123456789abcdef0123456789abcdef", "into the current directory"],
    ["job fetch last -o results", "what the last job left, into results"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const where = flags.output === undefined ? "the current directory" : `-o ${flags.output}`;
    if (flags.output === "") throw new RelayError("usage", "-o needs the name of a directory");
    const directory = resolveLocal(io, flags.output ?? ".");
    const { outputs, earlier } = await outputsOf(cluster, id);
    if (earlier > 0) await io.stderr.write(`notice: ${earlier} of earlier attempts are left out: job list-artifacts shows them\n`);
    if (outputs.length === 0)
      await io.stderr.write(`notice: ${id} left no files${(await cluster.job(id)).outcome === null ? " yet" : ""}\n`);
    const planned = await planOf(io, directory, outputs, where, flags.overwrite);
    let done = 0;
    await interruptible(
      io,
      () => `interrupted; ${done} of ${planned.length} files are there`,
      async (signal) => {
        for (const { artifact, target, there } of planned) {
          if (!there) {
            makeDirectories(directory, artifact.name, io, where);
            await fetchArtifact(io, cluster, artifact, target, where, signal);
          }
          done += 1;
          if (!json) await io.stdout.write(`${io.stdout.isTerminal ? `${oneLine(target)}${there ? " (was there)" : ""}` : target}\n`);
        }
      },
    );
    if (json) {
      const files = planned.map(({ artifact, target, there }) => ({ ...artifact, path: target, fetched: !there }));
      await printJson(io.stdout, { job_id: id, directory, files });
    }
    return EXIT.ok;
  },
});

interface Planned {
  readonly artifact: Artifact;
  readonly target: string;
  /** Whether the file is there with that very content. */
  readonly there: boolean;
}

/** Where each file goes. Nothing is done before it is known that all can. @throws RelayError state_conflict where another file is there */
async function planOf(io: CliIo, directory: string, outputs: readonly Artifact[], where: string, overwrite: boolean): Promise<Planned[]> {
  const planned: Planned[] = [];
  const others: string[] = [];
  for (const artifact of outputs) {
    try {
      const target = placeBelow(directory, artifact.name, io.env.platform);
      const found = fs.lstatSync(target, { throwIfNoEntry: false });
      if (found !== undefined && !found.isFile()) throw new RelayError("local_file_unusable", `${where}: ${target} is no regular file`);
      const there = found !== undefined && (await holdsArtifact(target, artifact));
      if (found !== undefined && !there) others.push(target);
      planned.push({ artifact, target, there });
    } catch (error) {
      throw unusableDirectory(where, error);
    }
  }
  if (!overwrite) refuseOthers(others, "-o DIR");
  return planned;
}

function makeDirectories(directory: string, name: string, io: CliIo, where: string): void {
  try {
    fs.mkdirSync(directory, { recursive: true });
    // Looked at once more: a fetch takes its time, and others write here, too.
    fs.mkdirSync(path.dirname(placeBelow(directory, name, io.env.platform)), { recursive: true });
  } catch (error) {
    throw unusableDirectory(where, error);
  }
}
