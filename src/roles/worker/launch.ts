import fs from "node:fs";
import path from "node:path";
import { account } from "../../execution/account.ts";
import { delegatedCgroup, ownCgroup, sweepCgroups } from "../../execution/cgroup.ts";
import { directSpawner, SHIM_ENVIRONMENT } from "../../execution/direct-spawner.ts";
import type { ShimLauncher } from "../../execution/launcher.ts";
import { chooseScope, scopeSpawner } from "../../execution/scope-spawner.ts";
import { SpareShimLauncher } from "../../execution/spare-pool.ts";
import { removeAbandoned } from "../../lib/files/abandoned-files.ts";
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
 * The way to start shims that fits where the worker runs: as part of a unit of systemd in scopes of their own, else as detached
 * children, each in a cgroup where the worker may make one. What would end them with the worker is said.
 */
export async function chooseLauncher({ command, environment, spares, spool, log }: LauncherOptions): Promise<ShimLauncher> {
  removeAbandoned(spool);
  const onTrouble = (message: string, error: unknown) => log.warn(message, error ?? undefined);
  const group = ownCgroup();
  const uid = process.getuid?.() ?? -1;
  const { manager, hazard } = await chooseScope({ group, worker: environment, uid, lingers: () => lingers(uid), run });
  if (manager !== null) {
    log.info(`shims run in scopes of the ${manager === "user" ? "user's" : "system's"} service manager`);
    return new SpareShimLauncher(scopeSpawner({ command, worker: environment, uid, manager }), { spares, spool, onTrouble });
  }
  if (hazard !== null) log.warn(`no scopes for shims: ${hazard}`);
  const cgroupParent = delegatedCgroup(group);
  if (cgroupParent !== null) sweepCgroups(cgroupParent);
  return new SpareShimLauncher(directSpawner({ command, cgroupParent, onTrouble }), { spares, spool, onTrouble });
}

/** logind keeps a file for each user that lingers. */
const lingers = (uid: number): boolean => fs.existsSync(path.join("/var/lib/systemd/linger", account(uid).name));

async function run(argv: readonly string[], environment: Readonly<Record<string, string>>): Promise<number | null> {
  try {
    return await Bun.spawn([...argv], { env: { ...SHIM_ENVIRONMENT, ...environment }, stdin: "ignore", stdout: "ignore", stderr: "ignore" })
      .exited;
  } catch {
    return null;
  }
}
