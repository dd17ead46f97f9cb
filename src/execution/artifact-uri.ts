import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RelayError } from "../domain/errors.ts";

/** Where an artifact's bytes lie: below the job's directory in the spool, among the inputs of all jobs, or in place below a root of its own. */
export type ArtifactPlace =
  | { readonly kind: "spool" | "input"; readonly relative: string }
  | { readonly kind: "file"; readonly path: string };

/** `spool:` and the path below the job's directory. Its parts are names that the relay has given. */
export const spoolUri = (relative: string): string => `spool:${relative}`;

/** `input:`, the SHA-256 and the name of an input. */
export const inputUri = (sha256: string, logicalName: string): string => `input:${sha256}/${logicalName}`;

/** `file:` URI of an absolute path (RFC 8089), percent-encoded. */
export const fileUri = (absolute: string): string => pathToFileURL(absolute).href;

/** @throws RelayError artifact_unreadable for a URI of another kind, path_escapes_root for a path that leaves the spool */
export function placeOf(uri: string): ArtifactPlace {
  const kind = uri.startsWith("spool:") ? "spool" : uri.startsWith("input:") ? "input" : null;
  if (kind !== null) {
    const relative = uri.slice(kind.length + 1);
    if (relative.split("/").some((part) => part === "" || part === "." || part === "..")) {
      throw new RelayError("path_escapes_root", `not a path below the spool: ${relative}`, { path: relative });
    }
    return { kind, relative };
  }
  if (uri.startsWith("file:///")) {
    const file = fileURLToPath(uri);
    if (path.normalize(file) === file) return { kind: "file", path: file };
  }
  throw new RelayError("artifact_unreadable", "the artifact's URI names no file of this worker", { uri });
}
