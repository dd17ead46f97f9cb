import type { LinkStatus } from "../../api/desktop/link-views.ts";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { isRelayError } from "../../domain/errors.ts";
import type { Installation } from "../installation.ts";
import { CONTENT_PATH, type Trial } from "./transport-test.ts";

export interface LinkTrial {
  readonly cluster: string;
  readonly signal: AbortSignal;
  /** Refuses a cluster that the test is not for. */
  readonly fits?: (entry: ClusterEntry) => void;
}

/** Try the link that the daemon holds: whether it is up, and how fast it is. Nothing is dialed for it. */
export async function tryLink(relay: Installation, { cluster, signal, fits = () => undefined }: LinkTrial, trial: Trial): Promise<void> {
  await trial.step("configuration", async () => fits(await relay.clusterEntry(cluster)));
  const { http } = relay.desktop.cluster(cluster);
  const look = async (): Promise<LinkStatus | null> => (await relay.desktop.links()).find((one) => one.cluster === cluster) ?? null;
  await trial.step(
    "link",
    async () => {
      const link = await look();
      if (link?.state === "up" || link?.state === "degraded") return link;
      // What any command is told is what has to be mended.
      await (await http.send("/healthz", { signal })).bytes();
      return look();
    },
    (link) =>
      link === null ? null : `${link.carrier ?? link.mode}, ${link.ssh_connections_since_bring_up ?? 0} SSH connections since it is up`,
  );
  await trial.measure({
    roundTrip: async (during) => void (await (await http.send("/healthz", { signal: during })).bytes()),
    async content(during) {
      try {
        return (await http.send(CONTENT_PATH, { signal: during })).body;
      } catch (error) {
        // One of an earlier version has nothing there.
        if (isRelayError(error, "not_found")) return null;
        throw error;
      }
    },
  });
}
