import { type Environment, variable } from "../../config/environment.ts";
import { type Paths, samePlace } from "../../config/paths.ts";
import { RelayError } from "../../domain/errors.ts";
import type { WorkerStatus } from "../../domain/views.ts";

type Running = Pick<WorkerStatus, "cluster" | "core_dir" | "spool_dir" | "process">;

/** In which way a worker of this machine keeps its things elsewhere than a command means; null when it does not. */
export function otherDirectories(paths: Pick<Paths, "coreDir" | "spoolDir">, running: Running): string | null {
  const places = [
    ["state", running.core_dir, paths.coreDir(running.cluster)],
    ["output", running.spool_dir, paths.spoolDir(running.cluster)],
  ] as const;
  const apart = places.filter(([, has, meant]) => !samePlace(has, meant));
  return apart.length === 0 ? null : apart.map(([what, has, meant]) => `its ${what} is in ${has}, not in ${meant}`).join("; ");
}

/**
 * Refuse to go on with a worker that keeps its things elsewhere, where variables name the places: whoever sets them means these.
 *
 * @throws RelayError configuration_error that names both places
 */
export function refuseOtherDirectories(env: Environment, paths: Pick<Paths, "coreDir" | "spoolDir">, running: Running): void {
  if (["CLIO_RELAY_CORE_DIR", "CLIO_RELAY_SPOOL_DIR"].every((name) => variable(env, name) === undefined)) return;
  const how = otherDirectories(paths, running);
  if (how === null) return;
  throw new RelayError(
    "configuration_error",
    `the worker of ${running.cluster} that runs, process ${running.process.pid}, is another one: ${how}`,
    { cluster: running.cluster, pid: running.process.pid, core_dir: running.core_dir, spool_dir: running.spool_dir },
    `clio-relay worker stop --cluster ${running.cluster}, and repeat it; or CLIO_RELAY_HOME=DIR for an installation with workers of its own`,
  );
}
