import { RelayError } from "../domain/errors.ts";
import { isId } from "../domain/id.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import { readPrivateFile } from "./private-file.ts";
import { REGISTRY_MAX_BYTES, REGISTRY_VERSIONS } from "./registry-format.ts";

/**
 * Names of the registered clusters, without a look at what else their entries hold: most commands need no more, and the schema takes longer to load than they run.
 *
 * @returns null where the file is not what it should be: whoever reads all of it says why
 */
export function clusterNames(paths: Pick<Paths, "clustersFile">, env: Pick<Environment, "uid" | "platform">): readonly string[] | null {
  let registry: { readonly version?: unknown; readonly clusters?: unknown };
  try {
    registry = JSON.parse(readPrivateFile(paths.clustersFile, REGISTRY_MAX_BYTES, env) ?? "null") ?? {};
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RelayError) return null;
    throw error;
  }
  const { version, clusters } = registry;
  if (!REGISTRY_VERSIONS.some((one) => one === version) || !Array.isArray(clusters)) return null;
  const names = clusters.map((entry: { readonly name?: unknown } | null) => entry?.name);
  return names.every((name): name is string => typeof name === "string" && isId(name)) ? names : null;
}
