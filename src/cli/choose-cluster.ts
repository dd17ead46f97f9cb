import { FIRST_CLUSTER } from "../config/clusters.ts";
import { RelayError } from "../domain/errors.ts";

/**
 * Name of the cluster that is meant: the one named, the setting, or the only one.
 *
 * @param registered asked only where neither says it
 * @throws RelayError usage that lists them when it cannot be told
 */
export async function chooseCluster(
  named: string | undefined,
  setting: string | null,
  registered: () => Promise<readonly { readonly name: string }[]>,
): Promise<string> {
  const name = named ?? setting;
  if (name !== null) return name;
  const names = (await registered()).map((entry) => entry.name);
  if (names.length === 1) return names[0]!;
  const shown = names.slice(0, 20);
  throw names.length === 0
    ? new RelayError("usage", "there is no cluster yet", { clusters: shown }, FIRST_CLUSTER)
    : new RelayError("usage", `--cluster is needed: ${shown.join(", ")}`, { clusters: shown }, "or set CLIO_RELAY_CLUSTER");
}
