import fs from "node:fs";
import path from "node:path";
import type { Artifact } from "../../domain/artifact.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { type FileInTheMaking, makeWholeFile } from "../../lib/whole-file.ts";
import { CLUSTER } from "../cluster-option.ts";
import { clusterOfArtifact } from "../find-record.ts";
import { artifactBytes } from "../follow/artifact-bytes.ts";
import { interruptible } from "../follow/interrupt.ts";
import { withLifeSigns } from "../follow/life-signs.ts";
import { Reconnect } from "../follow/reconnect.ts";
import type { CliIo } from "../io.ts";
import { unusable } from "../local-file.ts";
import { resolveLocal } from "../local-path.ts";
import { progressBar } from "../print/progress-text.ts";
import { bytesText } from "../print/quantities.ts";
import { oneLine } from "../print/safe-text.ts";
import { cut, printFields, printJson } from "../print/table.ts";
import { artifactId, text } from "../values.ts";
import { defineVerb, option } from "../verb.ts";

export const verb = defineVerb({
  summary: "Fetch a file that a job left",
  details:
    "With -o the file appears whole and verified by its SHA-256, or not at all; a fetch that breaks off goes on where it was. -o - writes to standard " +
    "output. Without -o the record is printed.",
  positionals: { artifact: artifactId },
  flags: { cluster: CLUSTER, output: option(text("FILE"), "Where to put it: a file, a directory, or - for standard output", "o") },
  examples: [
    ["job read-artifact artifact_0123456789abcdef0123456789abcdef", "what it is"],
    ["job read-artifact artifact_0123456789abcdef0123456789abcdef -o result.csv", "the file itself"],
    ["job read-artifact artifact_0123456789abcdef0123456789abcdef -o - | head", "its first lines"],
  ],
  async run({ flags, args, io, json, relay }) {
    const cluster = await clusterOfArtifact({ io, relay }, flags.cluster, args.artifact);
    const artifact = await cluster.artifact(args.artifact);
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
      async (signal) => {
        const bar = fetchBar(io, artifact);
        const reconnect = new Reconnect(bar.notices, io.clock, signal);
        const bytes = artifactBytes(cluster, artifact, reconnect, io.clock, signal);
        await withLifeSigns(cluster, reconnect, async () => {
          if (target === null) for await (const piece of bytes) await io.stdout.write(piece);
          else await save(bytes, target, bar, `-o ${flags.output}`);
        });
      },
    );
    if (target !== null) {
      if (json) await printJson(io.stdout, { ...artifact, path: target });
      else await io.stdout.write(`${io.stdout.isTerminal ? oneLine(target) : target}\n`);
    }
    return EXIT.ok;
  },
});

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

/** What takes a file's name must not take that of a device, a pipe or a socket. */
function replaceable(file: string, typed: string): string {
  const there = fs.statSync(file, { throwIfNoEntry: false });
  if (there === undefined || there.isFile()) return file;
  const what = there.isDirectory() ? "a directory" : "no regular file";
  throw new RelayError("local_file_unusable", `-o ${typed}: ${file} is ${what}`, {}, "-o - writes to standard output");
}

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

async function save(bytes: AsyncIterable<Uint8Array>, target: string, bar: ReturnType<typeof fetchBar>, where: string): Promise<void> {
  const file = await begun(target, where);
  let written = 0;
  try {
    for await (const piece of bytes) {
      await file.write(piece);
      written += piece.length;
      await bar.show(written);
    }
    await file.finish();
  } finally {
    await file.discard();
    await bar.clear();
  }
}

/** What is refused is the name that was typed, not the one that the file has in the making. */
async function begun(target: string, where: string): Promise<FileInTheMaking> {
  try {
    return await makeWholeFile(target);
  } catch (error) {
    throw unusable(where, error);
  }
}

/** A bar on standard error, where somebody looks at it. */
function fetchBar(io: CliIo, artifact: Artifact) {
  let shown = Number.NEGATIVE_INFINITY;
  const clear = async (): Promise<void> => {
    if (shown > Number.NEGATIVE_INFINITY) await io.stderr.write("\r\x1b[K");
  };
  return {
    clear,
    /** Standard error for whatever is said meanwhile; the bar comes back with the next bytes. */
    notices: {
      async write(data: string | Uint8Array): Promise<void> {
        await clear();
        await io.stderr.write(data);
      },
    },
    async show(written: number): Promise<void> {
      const now = io.clock.monotonic();
      if (!io.stderr.isTerminal || now - shown < 100) return;
      shown = now;
      const share = written / artifact.size_bytes;
      const line = `${progressBar(share, 30)} ${Math.floor(share * 100)}% ${bytesText(written)} ${oneLine(artifact.name)}`;
      await io.stderr.write(`\r\x1b[K${cut(line, io.stderr.columns - 1)}`);
    },
  };
}
