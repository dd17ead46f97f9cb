import fs from "node:fs";
import type { ClusterClient } from "../../api/client.ts";
import type { Artifact } from "../../domain/artifact.ts";
import { RelayError } from "../../domain/errors.ts";
import { makeWholeFile } from "../../lib/files/whole-file.ts";
import { artifactBytes } from "../follow/artifact-bytes.ts";
import { withLifeSigns } from "../follow/life-signs.ts";
import { Reconnect } from "../follow/reconnect.ts";
import type { CliIo } from "../io.ts";
import { unusable } from "../local-file.ts";
import { progressBar } from "../print/progress-text.ts";
import { bytesText } from "../print/quantities.ts";
import { oneLine } from "../print/safe-text.ts";
import { overwrites } from "../print/style.ts";
import { cut } from "../print/table.ts";

/**
 * Bring an artifact here, however often the connection breaks.
 *
 * @param target the file that it becomes, whole and verified, or not at all; null for standard output
 * @param where the option as it was typed, for what is wrong
 * @throws RelayError artifact_changed, local_file_unusable
 */
export async function fetchArtifact(
  io: CliIo,
  cluster: ClusterClient,
  artifact: Artifact,
  target: string | null,
  where: string,
  signal: AbortSignal,
): Promise<void> {
  const bar = fetchBar(io, artifact);
  const reconnect = new Reconnect(bar.notices, io.clock, signal);
  const bytes = artifactBytes(cluster, artifact, reconnect, io.clock, signal);
  await withLifeSigns(cluster, reconnect, async () => {
    if (target === null) for await (const piece of bytes) await io.stdout.write(piece);
    else await save(bytes, target, bar, where);
  });
}

/** Whether a file has the very content of an artifact. */
export async function holdsArtifact(file: string, { size_bytes, sha256 }: Artifact): Promise<boolean> {
  const there = fs.statSync(file, { throwIfNoEntry: false });
  if (there === undefined || !there.isFile() || there.size !== size_bytes) return false;
  const hash = new Bun.CryptoHasher("sha256");
  for await (const bytes of fs.createReadStream(file)) hash.update(bytes as Uint8Array);
  return hash.digest("hex") === sha256;
}

/** What takes a file's name must not take that of a device, a pipe or a socket. */
export function replaceable(file: string, typed: string): string {
  const there = fs.statSync(file, { throwIfNoEntry: false });
  if (there === undefined || there.isFile()) return file;
  const what = there.isDirectory() ? "a directory" : "no regular file";
  throw new RelayError("local_file_unusable", `-o ${typed}: ${file} is ${what}`, {}, "-o - writes to standard output");
}

/** Write a file, which appears whole or not at all. @param where the option as it was typed */
export async function save(
  bytes: AsyncIterable<Uint8Array>,
  target: string,
  bar: Pick<ReturnType<typeof fetchBar>, "show" | "clear">,
  where: string,
): Promise<void> {
  const file = await named(where, () => makeWholeFile(target));
  let written = 0;
  try {
    for await (const piece of bytes) {
      await named(where, () => file.write(piece));
      written += piece.length;
      await bar.show(written);
    }
    await named(where, () => file.finish());
  } finally {
    await file.discard();
    await bar.clear();
  }
}

/** What is refused is the name that was typed, not the one that the file has in the making. */
async function named<T>(where: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw unusable(where, error);
  }
}

/** A bar on standard error, where somebody looks at it. */
export function fetchBar(io: CliIo, of: Pick<Artifact, "name" | "size_bytes">) {
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
      if (!overwrites(io.stderr, io.env) || now - shown < 100) return;
      shown = now;
      const share = written / of.size_bytes;
      const line = `${progressBar(share, 30)} ${Math.floor(share * 100)}% ${bytesText(written)} ${oneLine(of.name)}`;
      await io.stderr.write(`\r\x1b[K${cut(line, io.stderr.columns - 1)}`);
    },
  };
}
