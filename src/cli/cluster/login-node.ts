import { type ClusterEntry, type LocalEntry, sshView } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";

/**
 * The entry of a cluster whose host is reached by ssh, whatever mode its link has.
 *
 * @throws RelayError configuration_error where there is no other host, or no login node is known
 */
export function withLoginNode<E extends ClusterEntry>(name: string, entry: E | null): Exclude<E, LocalEntry> {
  if (entry !== null && sshView(entry) !== null) return entry as Exclude<E, LocalEntry>;
  if (entry === null || entry.mode === "local")
    throw new RelayError("configuration_error", `${name} is on this machine: there is no other host to work on`, { cluster: name });
  const hint = `clio-relay cluster add --name ${name} --ssh-host HOST`;
  throw new RelayError("configuration_error", `of ${name} no login node is known, and this needs one`, { cluster: name }, hint);
}
