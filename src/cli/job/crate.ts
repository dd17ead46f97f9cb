import type { ClusterClient } from "../../api/client.ts";
import { type CrateFile, METADATA_FILE, PROV_FILE } from "../../api/provenance/crate-files.ts";
import type { History } from "../../api/provenance/history.ts";
import { provDocument } from "../../api/provenance/prov-json.ts";
import { type CrateWords, crateMetadata, scriptOf } from "../../api/provenance/ro-crate.ts";
import { type ErrorCode, isRelayError, RelayError } from "../../domain/errors.ts";
import { type ZipEntry, zip } from "../../lib/files/zip.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import { artifactBytes } from "../follow/artifact-bytes.ts";
import { withLifeSigns } from "../follow/life-signs.ts";
import { Reconnect } from "../follow/reconnect.ts";
import type { CliIo } from "../io.ts";
import { fetchBar, save } from "./fetched-file.ts";

/** What a crate is made of. */
export interface Crate {
  readonly history: History;
  readonly files: readonly CrateFile[];
  readonly words: CrateWords;
}

/**
 * Write a crate, with the files that are part of it as they come from the cluster, each verified.
 *
 * @param target the file that it becomes, whole or not at all; null for standard output
 * @param where the option as it was typed, for what is wrong
 * @throws RelayError artifact_changed, artifact_unreadable, local_file_unusable, or what keeps the connection from coming back
 */
export async function writeCrate(
  io: CliIo,
  cluster: ClusterClient,
  crate: Crate,
  target: string | null,
  where: string,
  signal: AbortSignal,
): Promise<void> {
  const part = crate.files.filter((file) => file.path !== null);
  const total = part.reduce((sum, { artifact }) => sum + artifact.size_bytes, 0);
  const bar = fetchBar(io, { name: "the files of the job", size_bytes: total });
  const reconnect = new Reconnect(bar.notices, io.clock, signal);
  let fetched = 0;
  const bytesOf = async function* ({ artifact }: CrateFile): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of artifactBytes(cluster, artifact, reconnect, io.clock, signal)) {
        fetched += piece.length;
        await bar.show(fetched);
        yield piece;
      }
    } catch (error) {
      throw isRelayError(error) && NOT_AS_IT_WAS.has(error.code) ? leftOut(artifact.name, error) : error;
    }
  };
  const bytes = zip(entriesOf(io, crate, bytesOf));
  await withLifeSigns(cluster, reconnect, async () => {
    if (target === null) for await (const piece of bytes) await io.stdout.write(piece);
    else await save(bytes, target, { show: () => Promise.resolve(), clear: bar.clear }, where);
  });
}

const NOT_AS_IT_WAS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["artifact_changed", "artifact_unreadable", "path_escapes_root"]);

const leftOut = (name: string, cause: RelayError): RelayError => {
  const words = `${JSON.stringify(name)} cannot be put into the crate: ${cause.message}`;
  return new RelayError(cause.code, words, cause.data, "--include none makes a crate that only names the files", { cause });
};

function* entriesOf(
  io: CliIo,
  { history, files, words }: Crate,
  bytesOf: (file: CrateFile) => AsyncIterable<Uint8Array>,
): Generator<ZipEntry> {
  const now = timestamp(io.clock);
  const made = (name: string, content: string): ZipEntry => {
    const bytes = new TextEncoder().encode(content);
    return { name, size: bytes.length, modified: new Date(now), bytes: once(bytes) };
  };
  yield made(METADATA_FILE, crateMetadata(history, files, words, now));
  yield made(PROV_FILE, `${JSON.stringify(provDocument(history), null, 2)}\n`);
  const script = scriptOf(history.job);
  if (script !== null) yield made(script.path, script.text);
  for (const file of files) {
    const { artifact, path } = file;
    if (path !== null) yield { name: path, size: artifact.size_bytes, modified: new Date(artifact.created_at), bytes: bytesOf(file) };
  }
}

/** Bytes that come in one piece. */
export async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
