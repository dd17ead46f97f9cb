import type { Artifact, ArtifactKind } from "../../domain/artifact.ts";
import { FilePaths } from "../../lib/files/file-paths.ts";
import type { History } from "./history.ts";

/** A file that a crate is about. */
export interface CrateFile {
  readonly artifact: Artifact;
  /** Whether the job used it or left it. */
  readonly role: "object" | "result";
  /** Where it lies in the crate, with `/` between its parts; null where it is only named. */
  readonly path: string | null;
}

const LOGS: readonly ArtifactKind[] = ["stdout", "stderr", "console", "console_stderr"];

/** The directory of a file that the job left. */
const directoryOf = ({ kind }: Artifact): string => (LOGS.includes(kind) ? "logs" : kind === "execution_output" ? "outputs" : "records");

/** Name of a crate's own description. */
export const METADATA_FILE = "ro-crate-metadata.json";
/** Where the same history lies as PROV-JSON. */
export const PROV_FILE = "records/prov.json";

/**
 * The files of a job, each with a path of its own: what it used, and of what it left the last file of each kind and name, whichever attempt left it. Who came last has its name,
 * where an earlier attempt left a file that is in its way.
 *
 * @param includeUpTo files of up to so many bytes are part of the crate
 */
export function crateFiles({ inputs, artifacts }: Pick<History, "inputs" | "artifacts">, includeUpTo: number): CrateFile[] {
  const last = new Map(artifacts.map((artifact) => [`${artifact.kind}/${artifact.name}`, artifact]));
  const taken = new FilePaths(folded);
  taken.take(PROV_FILE);
  const place = (artifact: Artifact, role: CrateFile["role"], directory: string): CrateFile => ({
    artifact,
    role,
    path: artifact.size_bytes <= includeUpTo ? freePath(artifact, directory, taken) : null,
  });
  const made = new Map<Artifact, CrateFile>();
  for (const artifact of artifacts.toReversed()) {
    if (last.get(`${artifact.kind}/${artifact.name}`) === artifact) made.set(artifact, place(artifact, "result", directoryOf(artifact)));
  }
  return [
    ...inputs.map(({ artifact }) => place(artifact, "object", "inputs")),
    ...[...last.values()].map((artifact) => made.get(artifact)!),
  ];
}

/** The name that it had, or one below its id where that is in the way of another file, or none for a file everywhere. */
function freePath(artifact: Artifact, directory: string, taken: FilePaths): string {
  const { artifact_id: id } = artifact;
  for (const name of [artifact.name.toWellFormed(), `${id}/${lastPart(artifact.name)}`, id].filter(isPlain)) {
    const path = `${directory}/${name}`;
    if (taken.take(path)) return path;
  }
  // Somebody has given a file another one's id for a name.
  for (let n = 2; ; n++) {
    const path = `${directory}/${id}-${n}`;
    if (taken.take(path)) return path;
  }
}

const lastPart = (name: string): string => name.toWellFormed().split("/").at(-1) ?? "";

/** Names that some file systems take for the same. */
const folded = (path: string): string => path.normalize("NFC").toLowerCase();

/** Whether it leads to a file below, and nowhere else, wherever it is unpacked. */
const isPlain = (name: string): boolean =>
  !/[\p{Cc}\\:*?"<>|]/u.test(name) && name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !/[. ]$/.test(part));

const FORMATS: Readonly<Record<string, string>> = {
  bz2: "application/x-bzip2",
  csv: "text/csv",
  gz: "application/gzip",
  h5: "application/x-hdf5",
  hdf5: "application/x-hdf5",
  html: "text/html",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  json: "application/json",
  log: "text/plain",
  md: "text/markdown",
  nc: "application/x-netcdf",
  out: "text/plain",
  pdf: "application/pdf",
  png: "image/png",
  sh: "application/x-sh",
  svg: "image/svg+xml",
  tar: "application/x-tar",
  tsv: "text/tab-separated-values",
  txt: "text/plain",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  zip: "application/zip",
};

/** Media type of a file by its kind and name; of what is not known, that of any bytes (RFC 2046, section 4.5.1). */
export function formatOf({ kind, name }: Pick<Artifact, "kind" | "name">): string {
  if (LOGS.includes(kind)) return "text/plain";
  const ending = /\.([A-Za-z0-9]{1,8})$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(FORMATS, ending) ? FORMATS[ending]! : "application/octet-stream";
}
