import type { Metadata } from "../domain/primitives.ts";
import type { FileVersion } from "./file-hash.ts";

/** What an artifact's metadata keep of the version of the file whose digest was taken. */
export const versionMetadata = ({ mtimeNs, ctimeNs, ino }: FileVersion): { mtime_ns: string; ctime_ns: string; ino: string } => ({
  mtime_ns: String(mtimeNs),
  ctime_ns: String(ctimeNs),
  ino: String(ino),
});

/**
 * Whether a file of the recorded size is still that version. `rewritten`: it was written to, or another file has its name. `touched`: it
 * cannot be told without reading it: its permissions, links or place may have changed, or its content and then its time.
 */
export function compareVersion(metadata: Metadata, found: FileVersion): "same" | "touched" | "rewritten" {
  const now = versionMetadata(found);
  if (metadata["mtime_ns"] !== now.mtime_ns) return "rewritten";
  return metadata["ctime_ns"] === now.ctime_ns && metadata["ino"] === now.ino ? "same" : "touched";
}

const REMEMBERED = 1_000;

/** Files that were found to hold what was recorded, so that each further piece of one does not read all of it again. */
export class VerifiedVersions {
  readonly #versions = new Map<string, string>();

  has = (artifactId: string, version: FileVersion): boolean => this.#versions.get(artifactId) === text(version);

  add(artifactId: string, version: FileVersion): void {
    this.#versions.delete(artifactId);
    this.#versions.set(artifactId, text(version));
    for (const oldest of this.#versions.keys()) {
      if (this.#versions.size <= REMEMBERED) break;
      this.#versions.delete(oldest);
    }
  }
}

const text = ({ dev, ino, size, mtimeNs, ctimeNs }: FileVersion): string => [dev, ino, size, mtimeNs, ctimeNs].join(" ");
