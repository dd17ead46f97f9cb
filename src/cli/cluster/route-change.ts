import { type ClusterEntry, routeRevision } from "../../config/cluster-entry.ts";
import type { CliIo } from "../io.ts";

/** Say on standard error that requests to a cluster now go elsewhere, and what makes them do so. */
export async function warnOfRoute(io: Pick<CliIo, "stderr">, before: ClusterEntry | null, after: ClusterEntry): Promise<void> {
  if (before === null) return;
  const [was, is] = [routeRevision(before), routeRevision(after)];
  if (was === is) return;
  const refresh =
    after.mode === "ssh"
      ? `; a link that is up keeps the old one until clio-relay disconnect ${after.name} && clio-relay connect ${after.name}`
      : "";
  await io.stderr.write(
    `warning: the way to ${after.name} has changed (route revision ${was.slice(0, 12)}, now ${is.slice(0, 12)})${refresh}\n`,
  );
}
