import { delegatedCgroup, ownCgroup, sweepCgroups } from "../../execution/cgroup.ts";
import { directSpawner, SHIM_ENVIRONMENT } from "../../execution/direct-spawner.ts";
import type { ShimLauncher } from "../../execution/launcher.ts";
import { scopeSpawner, scopesAvailable } from "../../execution/scope-spawner.ts";
import { SpareShimLauncher } from "../../execution/spare-pool.ts";
import { removeAbandoned } from "../../lib/abandoned-files.ts";
import type { Log } from "./context.ts";

export interface LauncherOptions {
  /** The relay's command with leading arguments, absolute: a shim is it with `__shim …`. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly spares: number;
  /** The cluster's spool. */
  readonly spool: string;
  readonly log: Log;
}

/**
 * The way to start shims that fits where the worker runs: as part of a service in scopes of their own, else as detached
 * children, each in a cgroup where the worker may make one.
 */
export async function chooseLauncher({ command, environment, spares, spool, log }: LauncherOptions): Promise<ShimLauncher> {
  removeAbandoned(spool);
  const onTrouble = (message: string, error: unknown) => log.warn(message, error ?? undefined);
  const group = ownCgroup();
  if (await scopesAvailable(group, environment, run)) {
    log.info("shims run in scopes of the user's service manager");
    return new SpareShimLauncher(scopeSpawner({ command, worker: environment }), { spares, spool, onTrouble });
  }
  const cgroupParent = delegatedCgroup(group);
  if (cgroupParent !== null) sweepCgroups(cgroupParent);
  return new SpareShimLauncher(directSpawner({ command, cgroupParent, onTrouble }), { spares, spool, onTrouble });
}

async function run(argv: readonly string[], environment: Readonly<Record<string, string>>): Promise<number | null> {
  try {
    return await Bun.spawn([...argv], { env: { ...SHIM_ENVIRONMENT, ...environment }, stdin: "ignore", stdout: "ignore", stderr: "ignore" })
      .exited;
  } catch {
    return null;
  }
}
