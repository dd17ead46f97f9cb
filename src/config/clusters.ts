import path from "node:path";
import * as v from "valibot";
import { Capacity } from "../domain/endpoint.ts";
import { RelayError } from "../domain/errors.ts";
import { Id, looseText } from "../domain/primitives.ts";
import { makePrivateDirectory, writeFileAtomic } from "../lib/atomic-file.ts";
import { tryLock } from "../lib/file-lock.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import { readPrivateFile } from "./private-file.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_CLUSTERS = 512;
const LOCK_WAIT_MS = 5_000;

export const DEFAULT_CAPACITY: Capacity = { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} };

/** What is known of a cluster. The name is a label of this installation and means nothing elsewhere. */
export const ClusterEntry = v.strictObject({
  name: Id,
  /** How its worker is reached. `local`: its socket on this machine. */
  mode: v.literal("local"),
  /** Shell text that runs before every job, for example `module load python`. */
  env_setup: v.optional(v.nullable(looseText(64 * 1024)), null),
  worker_capacity: v.optional(Capacity, DEFAULT_CAPACITY),
});
export type ClusterEntry = v.InferOutput<typeof ClusterEntry>;
export type ClusterEntryInput = v.InferInput<typeof ClusterEntry>;

const Registry = v.strictObject({
  version: v.literal(1),
  clusters: v.pipe(
    v.array(ClusterEntry),
    v.maxLength(MAX_CLUSTERS),
    v.check((list) => new Set(list.map(({ name }) => name)).size === list.length, "names a cluster twice"),
  ),
});
/** Content of clusters.json. */
export type Registry = v.InferOutput<typeof Registry>;

type Files = Pick<Paths, "clustersFile" | "runDir">;
type Owner = Pick<Environment, "uid" | "platform">;

/**
 * The registered clusters; none where there is no file yet.
 *
 * @throws RelayError configuration_error when the file is not owner-only, not JSON or does not fit, with path and reason
 */
export function readClusters(paths: Files, env: Owner): Registry {
  const file = paths.clustersFile;
  const text = readPrivateFile(file, MAX_BYTES, env);
  if (text === null) return { version: 1, clusters: [] };
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new RelayError("configuration_error", `${file} is not JSON: ${(error as Error).message}`, { path: file });
  }
  const version = data !== null && typeof data === "object" && "version" in data ? data.version : undefined;
  if (typeof version === "number" && version > 1) {
    throw new RelayError(
      "configuration_error",
      `${file} has version ${version}; this clio-relay knows version 1`,
      { path: file },
      "use the newer clio-relay",
    );
  }
  const result = v.safeParse(Registry, data);
  if (!result.success) {
    const issue = result.issues[0];
    throw new RelayError("configuration_error", `${file}: ${v.getDotPath(issue) ?? "the document"}: ${issue.message}`, { path: file });
  }
  return result.output;
}

/** The entry of a cluster. @throws RelayError cluster_not_found */
export function clusterEntry(registry: Registry, name: string): ClusterEntry {
  const entry = registry.clusters.find((one) => one.name === name);
  if (entry === undefined)
    throw clusterNotFound(
      name,
      registry.clusters.map((one) => one.name),
    );
  return entry;
}

/** The failure that names the clusters there are, or the command that makes the first. */
export function clusterNotFound(name: string, known: readonly string[]): RelayError {
  return new RelayError(
    "cluster_not_found",
    `there is no cluster ${JSON.stringify(name)}`,
    { cluster: name },
    known.length === 0 ? "clio-relay init" : `clusters: ${known.slice(0, 20).join(", ")}`,
  );
}

/**
 * Change the registry under a lock, so that no change of another process is lost. `change` returns the new list.
 *
 * @throws RelayError configuration_error, or what `change` throws
 */
export async function updateClusters(
  paths: Files,
  env: Owner,
  change: (clusters: readonly ClusterEntry[]) => readonly ClusterEntry[],
): Promise<Registry> {
  makePrivateDirectory(path.dirname(paths.clustersFile));
  makePrivateDirectory(paths.runDir);
  const deadline = performance.now() + LOCK_WAIT_MS;
  let lock = tryLock(path.join(paths.runDir, "clusters.lock"));
  while (lock === null) {
    if (performance.now() > deadline) throw new RelayError("state_conflict", "another process is changing the list of clusters");
    await Bun.sleep(20);
    lock = tryLock(path.join(paths.runDir, "clusters.lock"));
  }
  try {
    const clusters = [...change(readClusters(paths, env).clusters)];
    if (clusters.length > MAX_CLUSTERS) throw new RelayError("configuration_error", `at most ${MAX_CLUSTERS} clusters can be registered`);
    const text = `${JSON.stringify({ version: 1, clusters } satisfies Registry, null, 2)}\n`;
    if (Buffer.byteLength(text) > MAX_BYTES)
      throw new RelayError("configuration_error", `${paths.clustersFile} would exceed ${MAX_BYTES} bytes`);
    writeFileAtomic(paths.clustersFile, text);
    return { version: 1, clusters };
  } finally {
    lock.release();
  }
}
