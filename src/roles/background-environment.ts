import { type Environment, variable } from "../config/environment.ts";
import type { Paths } from "../config/paths.ts";

/** Ours that belong to one request or to one job, and never to a process that serves others. */
const OF_ONE_REQUEST = /^CLIO_RELAY_(?:CLUSTER|EVENTS|ATTEMPT|JOB_ID|TASK_ID|NO_INPUT|FRP_TOKEN|STCP_SECRET|API_TOKEN)$/;
/** The caller's terminal, directory and agent. */
const OF_THE_CALLER =
  /^(?:TERM|COLORTERM|COLUMNS|LINES|PWD|OLDPWD|SHLVL|_|SSH_(?:AUTH_SOCK|AGENT_PID|TTY|CONNECTION|CLIENT)|DISPLAY|WAYLAND_DISPLAY|TMUX\w*|STY|WINDOWID)$/;

/**
 * The environment for a process of ours that outlives the command that starts it: without what belongs to that command, and with
 * absolute paths where the caller's were relative.
 */
export function backgroundEnvironment(paths: Paths, env: Environment): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env.variables)) {
    if (value !== undefined && !OF_ONE_REQUEST.test(name) && !OF_THE_CALLER.test(name)) kept[name] = value;
  }
  const absolute: readonly (readonly [name: string, path: string])[] = [
    ["CLIO_RELAY_HOME", paths.base],
    ["CLIO_RELAY_CORE_DIR", paths.coreRoot],
    ["CLIO_RELAY_SPOOL_DIR", paths.spoolRoot],
    ["CLIO_RELAY_CLUSTER_REGISTRY", paths.clustersFile],
  ];
  for (const [name, path] of absolute) if (variable(env, name) !== undefined) kept[name] = path;
  return kept;
}
