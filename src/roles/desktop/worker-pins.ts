import type { ClusterEntry, SshEntry } from "../../config/cluster-entry.ts";
import type { LinkInfo } from "../../domain/link.ts";
import type { ExpectedWorker } from "../../transport/link-version.ts";
import { fingerprintOf, publicKeyFromLine } from "../../transport/session/keys.ts";

/** What an entry knows of the worker at its other end. */
type Pins = Pick<SshEntry, "worker_key" | "next_worker_key" | "worker_cluster" | "worker_id">;

/** Public keys that the worker may have, in the format of RFC 4253, section 6.6: the one that is pinned, then the one that it has announced. Null: none is known. */
export const pinnedKeys = ({ worker_key, next_worker_key }: Pick<Pins, "worker_key" | "next_worker_key">): readonly Buffer[] | null =>
  worker_key === null ? null : [worker_key, ...(next_worker_key === null ? [] : [next_worker_key])].map(publicKeyFromLine);

/** Who has to answer. */
export const expectedWorker = ({ name, worker_cluster, worker_id }: Pins & { readonly name: string }): ExpectedWorker => ({
  cluster: worker_cluster ?? name,
  ...(worker_id === null ? {} : { worker_id }),
});

/**
 * The entry as it is after a worker has said who it is, over a session in which it has proven that; the same entry where nothing is new. The first id is the one
 * from then on; a key that is announced is pinned beside the present one, and takes its place when it answers.
 */
export function withPins<E extends ClusterEntry>(entry: E, info: Pick<LinkInfo, "worker_id" | "host_key" | "next_host_key">): E {
  if (entry.mode === "local") return entry;
  const known: Pins = entry;
  const next = known.next_worker_key;
  const answers = next !== null && fingerprintOf(publicKeyFromLine(next)) === info.host_key;
  const pins: Pins = {
    ...known,
    worker_id: known.worker_id ?? info.worker_id,
    worker_key: answers ? next : known.worker_key,
    // Beside no key, one that is announced is nobody's.
    next_worker_key: known.worker_key === null ? null : info.next_host_key,
  };
  return Bun.deepEquals(known, pins) ? entry : ({ ...entry, ...pins } as E);
}
