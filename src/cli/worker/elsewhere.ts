import { isOutbound } from "../../config/cluster-entry.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { onHost } from "../cluster/on-host.ts";
import { oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { type Call, toggle } from "../verb.ts";

type Elsewhere = Pick<Call, "io" | "relay" | "noInput" | "json">;

interface Started {
  /** `starting`: its service has it on its way. */
  readonly state: "started" | "starting" | "already_running";
  readonly pid: number | null;
  readonly host: string;
  readonly supervised_by: string | null;
}

/** Where the link is no SSH connection, one is only made when it is asked for by name. */
export const SSH = toggle("Over an SSH connection to its login node, where the link is none; it may ask for passwords and codes");

/** @throws RelayError authorization_required for a mode whose link cannot do it, without --ssh */
async function checkSsh({ relay }: Pick<Call, "relay">, cluster: string, command: string, ssh: boolean): Promise<void> {
  const entry = await relay.clusterEntry(cluster);
  if (ssh || !isOutbound(entry)) return;
  throw new RelayError(
    "authorization_required",
    `${command} works on the host of ${cluster}, which a link of mode ${entry.mode} does not reach`,
    { cluster, mode: entry.mode },
    entry.ssh_host === null
      ? `${command} there`
      : `clio-relay ${command} --cluster ${cluster} --ssh makes one SSH connection to ${entry.ssh_host}`,
  );
}

/**
 * Start the worker of a cluster on its own host.
 *
 * @param limits options of the command line that belong to the cluster's entry there
 */
export async function startElsewhere(call: Elsewhere, cluster: string, limits: readonly string[], ssh: boolean): Promise<number> {
  await checkSsh(call, cluster, "worker start", ssh);
  if (limits.length > 0) {
    const change = limits.join(" ").replaceAll("--", "--worker-");
    throw new RelayError("usage", `the limits of ${cluster} are part of its entry`, {}, `clio-relay cluster add ${cluster} ${change}`);
  }
  const done = await onHost<"worker-start", Started>(call, cluster, { task: "worker-start", command: "worker start", options: {} });
  if (call.json) await printJson(call.io.stdout, done);
  else {
    const process = done.pid === null ? "" : ` as process ${done.pid}`;
    const how = { started: "runs", starting: "is on its way", already_running: "runs already" }[done.state];
    await call.io.stdout.write(`worker of ${cluster} ${how} on ${oneLine(done.host)}${process}\n`);
  }
  return done.state === "starting" ? EXIT.notFinished : EXIT.ok;
}

interface Stopped {
  readonly pid: number | null;
  readonly host: string;
  readonly stopped: readonly string[];
}

/** Stop the worker of a cluster on its own host, and what would start it again. @param kill by force where it does not end by itself */
export async function stopElsewhere(call: Elsewhere, cluster: string, ssh: boolean, kill: boolean): Promise<number> {
  await checkSsh(call, cluster, "worker stop", ssh);
  const done = await onHost<"worker-stop", Stopped>(call, cluster, {
    task: "worker-stop",
    command: "worker stop",
    options: { kill },
  });
  if (call.json) await printJson(call.io.stdout, done);
  else
    await call.io.stdout.write(
      `${done.pid === null ? `no worker is running for ${cluster}` : `stopped process ${done.pid}`} on ${oneLine(done.host)}\n`,
    );
  for (const service of done.stopped)
    await call.io.stderr.write(`notice: ${service} is stopped until clio-relay worker start --cluster ${cluster}\n`);
  return EXIT.ok;
}
