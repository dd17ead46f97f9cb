import fs from "node:fs";
import { type Identity, isAlive } from "../../lib/system/process-identity.ts";
import { ATTEMPT_MARK } from "../spool-records.ts";
import { CallFailed } from "./call-failed.ts";

const OWN = /^CLIO_RELAY_/;

/**
 * All that a server gets as its environment: what jobs get, without the relay's own but the mark by which its processes are found, and the variables that
 * it is to have of the worker's. Those are read from the worker's process when they are wanted (proc_pid_environ(5)), so that they are written nowhere.
 *
 * @param around this process's environment: what jobs get, and what the cluster's setup text made of it
 * @param envFrom the server's variable -> the worker's
 * @throws CallFailed environment_missing
 */
export function serverEnvironment(
  around: Readonly<Record<string, string | undefined>>,
  envFrom: Readonly<Record<string, string>>,
  worker: Identity,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(around))
    if (value !== undefined && (!OWN.test(name) || name === ATTEMPT_MARK)) environment[name] = value;
  const wanted = Object.entries(envFrom);
  const of = wanted.length === 0 ? new Map<string, string>() : workersVariables(worker);
  for (const [name, source] of wanted) {
    const value = of.get(source) ?? around[source];
    if (value === undefined) throw new CallFailed("environment_missing", `there is no variable ${source}, which ${name} is to be`);
    environment[name] = value;
  }
  return environment;
}

/** What the worker was started with; nothing where it is gone: the setup text may make it, too. */
function workersVariables(worker: Identity): ReadonlyMap<string, string> {
  try {
    const entries = fs.readFileSync(`/proc/${worker.pid}/environ`, "utf8").split("\0");
    // Another process may have its number by now.
    if (!isAlive(worker)) return new Map();
    return new Map(
      entries.flatMap((entry) => {
        const end = entry.indexOf("=");
        return end <= 0 ? [] : [[entry.slice(0, end), entry.slice(end + 1)] as const];
      }),
    );
  } catch {
    return new Map();
  }
}
