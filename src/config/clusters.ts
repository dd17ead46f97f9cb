import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { isErrno, makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { lockWithin } from "../lib/files/waited-lock.ts";
import { ClusterEntry } from "./cluster-entry.ts";
import type { Environment } from "./environment.ts";
import { FIRST_CLUSTER } from "./first-cluster.ts";
import type { Paths } from "./paths.ts";
import { readPrivateFile } from "./private-file.ts";
import { REGISTRY_MAX_BYTES, REGISTRY_VERSION, REGISTRY_VERSIONS } from "./registry-format.ts";
import { REMOTE_MCP_BOUNDS } from "./remote-mcp-server.ts";

const MAX_CLUSTERS = 512;
const LOCK_WAIT_MS = 5_000;

const Registry = v.strictObject({
  version: v.picklist(REGISTRY_VERSIONS),
  clusters: v.pipe(
    v.array(ClusterEntry),
    v.maxLength(MAX_CLUSTERS),
    v.check((list) => new Set(list.map(({ name }) => name)).size === list.length, "names a cluster twice"),
    v.check(
      (list) => serversIn(list) <= REMOTE_MCP_BOUNDS.serversInAll,
      `at most ${REMOTE_MCP_BOUNDS.serversInAll} MCP servers can be registered in all`,
    ),
  ),
});
function serversIn(clusters: readonly ClusterEntry[]): number {
  return clusters.reduce((sum, { remote_mcp_servers = {} }) => sum + Object.keys(remote_mcp_servers).length, 0);
}

/** Content of clusters.json, as this version writes it. */
export interface Registry {
  readonly version: typeof REGISTRY_VERSION;
  readonly clusters: readonly ClusterEntry[];
}

type Files = Pick<Paths, "clustersFile" | "runDir">;
type Owner = Pick<Environment, "uid" | "platform">;

/**
 * The registered clusters; none where there is no file yet.
 *
 * @throws RelayError configuration_error when the file is not owner-only, not JSON or does not fit, with path and reason
 */
export function readClusters(paths: Files, env: Owner): Registry {
  const file = paths.clustersFile;
  const text = readPrivateFile(file, REGISTRY_MAX_BYTES, env);
  if (text === null) return { version: REGISTRY_VERSION, clusters: [] };
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new RelayError("configuration_error", `${file} is not JSON: ${(error as Error).message}`, { path: file });
  }
  const version = data !== null && typeof data === "object" && "version" in data ? data.version : undefined;
  if (typeof version === "number" && version > REGISTRY_VERSION) {
    throw new RelayError(
      "configuration_error",
      `${file} has version ${version}; this clio-relay knows versions up to ${REGISTRY_VERSION}`,
      { path: file },
      "use the newer clio-relay",
    );
  }
  const result = v.safeParse(Registry, data);
  if (!result.success) {
    const issue = result.issues[0];
    throw new RelayError("configuration_error", `${file}: ${v.getDotPath(issue) ?? "the document"}: ${issue.message}`, { path: file });
  }
  return { version: REGISTRY_VERSION, clusters: result.output.clusters };
}

/** The entry of a cluster. @throws RelayError cluster_not_found */
export function clusterEntry(registry: Pick<Registry, "clusters">, name: string): ClusterEntry {
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
    known.length === 0 ? FIRST_CLUSTER : `clusters: ${known.slice(0, 20).join(", ")}`,
  );
}

/**
 * Change the registry under a lock, so that no change of another process is lost. `change` returns the new list, or the one it was given where nothing changes.
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
  const lock = await lockWithin(path.join(paths.runDir, "clusters.lock"), LOCK_WAIT_MS).catch((error: unknown) => {
    if (isErrno(error, "EAGAIN")) throw new RelayError("state_conflict", "another process is changing the list of clusters");
    throw error;
  });
  try {
    const before = readClusters(paths, env);
    const after = change(before.clusters);
    if (after === before.clusters && fs.existsSync(paths.clustersFile)) return before;
    const clusters = [...after];
    if (clusters.length > MAX_CLUSTERS) throw new RelayError("configuration_error", `at most ${MAX_CLUSTERS} clusters can be registered`);
    if (serversIn(clusters) > REMOTE_MCP_BOUNDS.serversInAll) {
      throw new RelayError("configuration_error", `at most ${REMOTE_MCP_BOUNDS.serversInAll} MCP servers can be registered in all`);
    }
    const registry: Registry = { version: REGISTRY_VERSION, clusters };
    const text = `${JSON.stringify(registry, null, 2)}\n`;
    if (Buffer.byteLength(text) > REGISTRY_MAX_BYTES)
      throw new RelayError("configuration_error", `${paths.clustersFile} would exceed ${REGISTRY_MAX_BYTES} bytes`);
    writeFileAtomic(paths.clustersFile, text);
    return registry;
  } finally {
    lock?.release();
  }
}
