import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { Installation } from "../installation.ts";
import { CONTENT_PATH, type Trial } from "./transport-test.ts";

/**
 * Try the link that the daemon holds: whether it is up, and how fast it is. Nothing is dialed for it.
 *
 * @param fits refuses a cluster that the test is not for
 */
export async function tryLink(
  relay: Installation,
  cluster: string,
  trial: Trial,
  fits: (entry: ClusterEntry) => void = () => undefined,
): Promise<void> {
  await trial.step("configuration", async () => fits(await relay.clusterEntry(cluster)));
  await trial.step(
    "link",
    async () => {
      const link = (await relay.desktop.links()).find((one) => one.cluster === cluster);
      if (link !== undefined && (link.state === "up" || link.state === "degraded")) return link;
      const why = link?.detail ?? "there is none";
      const code = link?.state === "authorization_required" ? "authorization_required" : "link_down";
      // There is no link to bring up to a worker of this machine.
      const fix = link?.mode === "local" ? `clio-relay worker start --cluster ${cluster}` : `clio-relay connect ${cluster}`;
      throw new RelayError(code, `the link to ${cluster} is ${link?.state ?? "unknown"}: ${why}`, { cluster }, fix);
    },
    (link) => `${link.carrier ?? link.mode}, ${link.ssh_connections_since_bring_up ?? 0} SSH connections since it is up`,
  );
  const { http } = relay.desktop.cluster(cluster);
  await trial.measure({
    roundTrip: async (signal) => void (await (await http.send("/healthz", { signal })).bytes()),
    async content(signal) {
      try {
        return (await http.send(CONTENT_PATH, { signal })).body;
      } catch (error) {
        // One of an earlier version has nothing there.
        if (isRelayError(error, "not_found")) return null;
        throw error;
      }
    },
  });
}
