import path from "node:path";
import { SHIM_GROUP_PREFIX } from "./cgroup.ts";
import { SHIM_ENVIRONMENT, spawnDetached } from "./direct-spawner.ts";
import type { ShimSpawner } from "./launcher.ts";

/** Which service manager is asked: the machine's, or the user's own. */
export type Manager = "system" | "user";

/**
 * The command that runs another in a transient scope of a service manager (systemd-run(1)): the scope is no part of the worker's unit,
 * so stopping or killing that leaves it alone.
 */
export const scopeArgv = (manager: Manager, id: string, command: readonly string[]): string[] => [
  "systemd-run",
  `--${manager}`,
  "--scope",
  "--collect",
  "--quiet",
  `--unit=${SHIM_GROUP_PREFIX}${id}`,
  "--",
  ...command,
];

/** Who the worker is to the service managers. */
export interface ScopeOwner {
  /** The worker's environment: where the user's service manager is reached. */
  readonly worker: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
}

export interface ScopeSpawnerOptions extends ScopeOwner {
  /** The relay's executable with leading arguments. */
  readonly command: readonly string[];
  readonly manager: Manager;
  readonly newId?: () => string;
}

/** Shims in scopes of their own. systemd-run replaces itself with the command, so its process is the shim. */
export function scopeSpawner(options: ScopeSpawnerOptions): ShimSpawner {
  const environment = { ...SHIM_ENVIRONMENT, ...managerAddress(options.manager, options) };
  const newId = options.newId ?? (() => crypto.randomUUID());
  return {
    async spawn(args, logFile) {
      return spawnDetached(scopeArgv(options.manager, newId(), [...options.command, ...args]), environment, logFile);
    },
  };
}

/** The variables by which systemd-run finds a service manager. A system unit of a user's has none; the directory has a fixed name (pam_systemd(8)). */
function managerAddress(manager: Manager, { worker, uid }: ScopeOwner): Record<string, string> {
  if (manager === "system") return {};
  const bus = worker["DBUS_SESSION_BUS_ADDRESS"];
  return { XDG_RUNTIME_DIR: worker["XDG_RUNTIME_DIR"] || `/run/user/${uid}`, ...(bus ? { DBUS_SESSION_BUS_ADDRESS: bus } : {}) };
}

/** Runs a command to its end; resolves to its exit code, or null when it could not be started. */
export type RunCommand = (argv: readonly string[], environment: Readonly<Record<string, string>>) => Promise<number | null>;

/** The unit of systemd whose cgroup that is (systemd.unit(5)); null where it is none's. */
export function unitOf(group: string | null): string | null {
  const names = group?.split("/").filter((name) => /\.(?:service|scope)$/.test(name)) ?? [];
  return names.at(-1) ?? null;
}

export interface ScopeProbe extends ScopeOwner {
  /** The worker's own cgroup directory. */
  readonly group: string | null;
  /** Whether the user's service manager stays when the user's last session ends (loginctl(1), enable-linger). */
  readonly lingers: () => boolean;
  readonly run: RunCommand;
}

export interface ScopeChoice {
  /** Who makes scopes for shims; null when they are children of the worker's, in its own unit. */
  readonly manager: Manager | null;
  /** What ends shims that are in no scope of their own, for people; null when nothing does. */
  readonly hazard: string | null;
}

/**
 * Find out who can give shims a scope of their own, where the worker is part of a unit whose end would be theirs: the machine's manager
 * for root, else the user's. Each is tried before it counts.
 */
export async function chooseScope(probe: ScopeProbe): Promise<ScopeChoice> {
  const unit = unitOf(probe.group);
  if (unit === null) return { manager: null, hazard: null };
  const makes = async (manager: Manager): Promise<boolean> =>
    (await probe.run(scopeArgv(manager, `probe-${crypto.randomUUID()}`, ["true"]), {
      ...SHIM_ENVIRONMENT,
      ...managerAddress(manager, probe),
    })) === 0;
  if (probe.uid === 0 && (await makes("system"))) return { manager: "system", hazard: null };
  // The user's manager ends with the last session where it does not linger, and its scopes with it; a session's processes need not.
  const session = /^session-[^/]*\.scope$/.test(path.basename(unit));
  if ((!session || probe.lingers()) && (await makes("user"))) return { manager: "user", hazard: null };
  return {
    manager: null,
    hazard: session
      ? `jobs end with the login session ${unit} where the system ends what sessions leave (logind.conf(5), KillUserProcesses); loginctl enable-linger helps`
      : `jobs end when ${unit} is stopped, unless it has KillMode=process`,
  };
}
