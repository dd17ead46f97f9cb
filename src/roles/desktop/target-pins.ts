import type { SshEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Found } from "../../transport/bring-up/find-worker.ts";

/** Whether anything of an entry can only be held against what the site says of itself. */
export const asksForSite = ({ target_identity: pins }: SshEntry): boolean =>
  pins.scheduler_cluster_name !== null || pins.site_marker_sha256 !== null;

/**
 * Hold the pins of a cluster's entry against the host that was reached.
 *
 * @throws RelayError wrong_site, wrong_login_node
 */
export function checkPins(entry: SshEntry, found: Pick<Found, "hostname" | "site">): void {
  checkSite(entry, found);
  const { name, target_identity: pins } = entry;
  if (pins.hostnames.length === 0 || pins.hostnames.includes(found.hostname)) return;
  throw new RelayError(
    "wrong_login_node",
    `the host that answered is ${found.hostname}, and the entry of ${name} pins ${pins.hostnames.join(" or ")}`,
    { cluster: name, reached: found.hostname, pinned: pins.hostnames },
    `clio-relay cluster pin-target ${name} --target-hostname ${found.hostname} takes this one`,
  );
}

/** @throws RelayError wrong_site */
export function checkSite({ name, target_identity: pins }: SshEntry, { hostname, site }: Pick<Found, "hostname" | "site">): void {
  const kinds = [
    ["--scheduler-cluster-name", "the scheduler's cluster", pins.scheduler_cluster_name, site?.schedulerCluster ?? null],
    ["--site-marker-sha256", "the site's marker", pins.site_marker_sha256, site?.markerSha256 ?? null],
  ] as const;
  for (const [flag, what, pinned, there] of kinds) {
    if (pinned === null || pinned === there) continue;
    throw new RelayError(
      "wrong_site",
      `${what} is ${there ?? "unknown"} on ${hostname}, and the entry of ${name} pins ${pinned}`,
      { cluster: name, host: hostname, reached: there, pinned },
      there === null
        ? `clio-relay cluster pin-target ${name} --clear takes any site`
        : `clio-relay cluster pin-target ${name} ${flag} ${there} takes this one`,
    );
  }
}
