import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import zlib from "node:zlib";
import { unreadableFile } from "../../config/named-file.ts";
import { RelayError } from "../../domain/errors.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { tarEnd, tarFile } from "./tar.ts";

/** Something to be brought to a host as it is. */
export interface Payload {
  /** For people. */
  readonly file: string;
  /** SHA-256 of its bytes. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

const SOURCE_MAX_BYTES = 256 * 1024 * 1024;
const FILES_MAX = 20_000;
/** What a source tree has besides itself. */
const LEFT_OUT = /^(?:\..*|__pycache__|.*\.py[co])$/;

const gzip = promisify(zlib.gzip);

/**
 * A JARVIS-CD to be installed: an archive (tar, zip or wheel) as it is, or a source tree, of which an archive is made that is the same for the same files.
 * Hidden files, compiled ones and symbolic links of a tree are left out.
 *
 * @throws RelayError local_file_missing, local_file_unusable; artifact_unfit for a directory that is none, and for more than 256 MiB or 20,000 files
 */
export async function jarvisSource(place: string): Promise<Payload> {
  const stat = await looked(place);
  if (!stat.isDirectory()) return wholeFile(place);
  if (!fs.existsSync(path.join(place, "jarvis_cd", "core", "cli.py")))
    throw new RelayError("artifact_unfit", `${place} is no source tree of JARVIS-CD: it has no jarvis_cd/core/cli.py`, { path: place });
  const bytes = await gzip(await packed(place), { level: 6 });
  return { file: place, digest: sha256Hex(bytes), bytes };
}

/** A file as it is. @throws RelayError local_file_missing, local_file_unusable, artifact_unfit */
export async function wholeFile(file: string): Promise<Payload> {
  const stat = await looked(file);
  if (!stat.isFile()) throw new RelayError("local_file_unusable", `${file} is no regular file`, { path: file });
  if (stat.size > SOURCE_MAX_BYTES) throw tooMuch(file);
  const bytes = await fs.promises.readFile(file).catch(unusable(file));
  return { file, digest: sha256Hex(bytes), bytes };
}

const looked = (file: string): Promise<fs.Stats> => fs.promises.stat(file).catch(unusable(file));

const unusable =
  (file: string) =>
  (cause: Error): never => {
    throw unreadableFile(file, cause);
  };

const tooMuch = (file: string): RelayError =>
  new RelayError("artifact_unfit", `${file} has more than ${SOURCE_MAX_BYTES / 1024 / 1024} MiB or ${FILES_MAX} files`, { path: file });

async function packed(root: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  let files = 0;
  for await (const name of filesBelow(root, "")) {
    const file = path.join(root, name);
    const { mode } = await looked(file);
    const content = await fs.promises.readFile(file).catch(unusable(file));
    size += content.length;
    if (++files > FILES_MAX || size > SOURCE_MAX_BYTES) throw tooMuch(root);
    pieces.push(...tarFile(name.split(path.sep).join("/"), content, (mode & 0o100) !== 0));
  }
  return Buffer.concat([...pieces, tarEnd()]);
}

/** Regular files in a fixed order. */
async function* filesBelow(root: string, below: string): AsyncGenerator<string> {
  const directory = path.join(root, below);
  const entries = await fs.promises.readdir(directory, { withFileTypes: true }).catch(unusable(directory));
  for (const entry of entries.filter(({ name }) => !LEFT_OUT.test(name)).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = path.join(below, entry.name);
    if (entry.isDirectory()) yield* filesBelow(root, name);
    else if (entry.isFile()) yield name;
  }
}
