import { RelayError } from "../../domain/errors.ts";
import { isSsh } from "../../transport/ledger.ts";
import type { Installation } from "../installation.ts";
import type { Trial } from "./transport-test.ts";

/** Try the link that the daemon holds: whether it is up, and how fast it is. Nothing is dialed for it. */
export async function tryLink(relay: Installation, cluster: string, trial: Trial): Promise<void> {
  await trial.step(
    "link",
    async () => {
      const link = (await relay.desktop.links()).find((one) => one.cluster === cluster);
      if (link !== undefined && (link.state === "up" || link.state === "degraded")) return link;
      const why = link?.detail ?? "there is none";
      const code = link?.state === "authorization_required" ? "authorization_required" : "link_down";
      throw new RelayError(
        code,
        `the link to ${cluster} is ${link?.state ?? "unknown"}: ${why}`,
        { cluster },
        `clio-relay connect ${cluster}`,
      );
    },
    (link) => `${link.carrier ?? link.mode}, ${link.ledger.filter(isSsh).length} SSH connections so far`,
  );
  const { http } = relay.desktop.cluster(cluster);
  const size = async (target: string, signal: AbortSignal): Promise<number> => (await (await http.send(target, { signal })).bytes()).length;
  await trial.measure({
    roundTrip: async (signal) => void (await size("/healthz", signal)),
    fetch: (signal) => size("/openapi.json", signal),
  });
}
