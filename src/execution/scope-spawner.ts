import { SHIM_GROUP_PREFIX } from "./cgroup.ts";
import { SHIM_ENVIRONMENT, spawnDetached } from "./direct-spawner.ts";
import type { ShimSpawner } from "./launcher.ts";

/**
 * The command that runs another in a transient scope of the user's service manager (systemd-run(1)): the scope is no part of the
 * worker's unit, so stopping or killing that leaves it alone.
 */
export const scopeArgv = (id: string, command: readonly string[]): string[] => [
  "systemd-run",
  "--user",
  "--scope",
  "--collect",
  "--quiet",
  `--unit=${SHIM_GROUP_PREFIX}${id}`,
  "--",
  ...command,
];

export interface ScopeSpawnerOptions {
  /** The relay's executable with leading arguments. */
  readonly command: readonly string[];
  /** The worker's environment: where the user's service manager is reached. */
  readonly worker: Readonly<Record<string, string | undefined>>;
  readonly newId?: () => string;
}

/** Shims in scopes of their own. systemd-run replaces itself with the command, so its process is the shim. */
export function scopeSpawner(options: ScopeSpawnerOptions): ShimSpawner {
  const environment = { ...SHIM_ENVIRONMENT, ...managerAddress(options.worker) };
  const newId = options.newId ?? (() => crypto.randomUUID());
  return {
    spawn: (args, logFile) => Promise.resolve(spawnDetached(scopeArgv(newId(), [...options.command, ...args]), environment, logFile)),
  };
}

/** The variables by which systemd-run finds the user's service manager. */
function managerAddress(worker: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const address: Record<string, string> = {};
  for (const name of ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]) {
    const value = worker[name];
    if (value !== undefined && value !== "") address[name] = value;
  }
  return address;
}

/** Runs a command to its end; resolves to its exit code, or null when it could not be started. */
export type RunCommand = (argv: readonly string[], environment: Readonly<Record<string, string>>) => Promise<number | null>;

/** The worker runs as a unit of systemd when its own cgroup is a service's (systemd.unit(5)). */
export const isServiceCgroup = (group: string | null): boolean => group !== null && /\.service(\/|$)/.test(group);

/**
 * Whether shims should be started in scopes: the worker is part of a service, whose end would be theirs otherwise, and the user's
 * service manager makes a scope when asked to.
 *
 * @param group the worker's own cgroup directory
 */
export async function scopesAvailable(
  group: string | null,
  worker: Readonly<Record<string, string | undefined>>,
  run: RunCommand,
): Promise<boolean> {
  if (!isServiceCgroup(group)) return false;
  const environment = { ...SHIM_ENVIRONMENT, ...managerAddress(worker) };
  return (await run(scopeArgv(`probe-${crypto.randomUUID()}`, ["true"]), environment)) === 0;
}
