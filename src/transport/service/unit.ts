import { FEW_THREADS } from "../../lib/system/few-threads.ts";
import { PLAIN_COPIES } from "../../lib/system/plain-copies.ts";

/** The user's unit of a cluster's worker. */
export const unitName = (cluster: string): string => `clio-relay-worker-${cluster}.service`;

export interface UnitOptions {
  readonly cluster: string;
  /** The installation's `current/clio-relay`, absolute. */
  readonly executable: string;
  /** Where the installation is, where it is not in the usual place. */
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * A unit of systemd (systemd.service(5)) that keeps a worker running. Shims and their jobs are in scopes of their own, or outlive it by `KillMode=process`;
 * one job that runs out of memory is not the worker's end. The trial before each start is bounded by TimeoutStartSec.
 */
export function userUnit({ cluster, executable, environment }: UnitOptions): string {
  const program = programOf(executable);
  return [
    "[Unit]",
    `Description=clio-relay worker of ${cluster}`,
    "StartLimitIntervalSec=0",
    "",
    "[Service]",
    "Type=simple",
    ...environmentLines({ ...FEW_THREADS, ...PLAIN_COPIES, ...environment }),
    `ExecStartPre=${program} --version`,
    `ExecStart=${program} worker run --cluster ${cluster}`,
    "Restart=always",
    "RestartSec=5",
    "TimeoutStartSec=300",
    "TimeoutStopSec=60",
    "KillMode=process",
    "OOMPolicy=continue",
    "",
    "[Install]",
    "WantedBy=default.target",
    "",
  ].join("\n");
}

/** `Environment=` of each variable (systemd.exec(5)). */
export const environmentLines = (environment: Readonly<Record<string, string>>): string[] =>
  Object.entries(environment).map(([name, value]) => `Environment=${unitWord(`${name}=${value}`, false)}`);

/** What systemd takes for the name of an executable as it is, whatever its version. */
const PLAIN = /^[A-Za-z0-9_./+@-]+$/;

/** The beginning of a command line. A shell hands over to an executable whose name systemd would not take. */
export const programOf = (executable: string): string =>
  PLAIN.test(executable) ? executable : `/bin/sh -c ${unitWord('exec "$0" "$@"', true)} ${unitWord(executable, true)}`;

/** A quoted word of a unit (systemd.syntax(7), Quoting); `%` begins a specifier, and `$` a variable in command lines (systemd.service(5)). */
export function unitWord(text: string, command: boolean): string {
  const escaped = text.replace(/[\\"]/g, "\\$&").replaceAll("%", "%%").replaceAll("\n", "\\n");
  return `"${command ? escaped.replaceAll("$", "$$$$") : escaped}"`;
}
