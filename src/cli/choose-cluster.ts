import { FIRST_CLUSTER } from "../config/first-cluster.ts";
import { RelayError } from "../domain/errors.ts";

/**
 * Names of the clusters that may be meant: the one named, the setting, or all that are registered.
 *
 * @param registered asked only where neither says it
 * @throws RelayError usage where there is none
 */
export async function clustersMeant(
  named: string | undefined,
  setting: string | null,
  registered: () => Promise<readonly { readonly name: string }[]>,
): Promise<readonly string[]> {
  const name = named ?? setting;
  if (name !== null) return [name];
  const names = (await registered()).map((entry) => entry.name);
  if (names.length === 0) throw new RelayError("usage", "there is no cluster yet", { clusters: [] }, FIRST_CLUSTER);
  return names;
}

/**
 * The one cluster that is meant. See clustersMeant.
 *
 * @param settingsFile where the setting would stand
 * @throws RelayError usage that lists them when it cannot be told
 */
export async function chooseCluster(
  named: string | undefined,
  setting: string | null,
  registered: () => Promise<readonly { readonly name: string }[]>,
  settingsFile: string,
): Promise<string> {
  const names = await clustersMeant(named, setting, registered);
  if (names.length === 1) return names[0]!;
  const shown = names.slice(0, 20);
  const hint = `or set CLIO_RELAY_CLUSTER, or default_cluster = "${names[0]}" in ${settingsFile}`;
  throw new RelayError("usage", `--cluster is needed: ${shown.join(", ")}`, { clusters: shown }, hint);
}
