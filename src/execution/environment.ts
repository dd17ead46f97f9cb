import path from "node:path";
import type { TraceContext } from "../domain/trace.ts";
import { account } from "./account.ts";
import { ATTEMPT_MARK, attemptMark } from "./spool-records.ts";

export interface JobEnvironmentInput {
  /** The worker's environment. */
  readonly worker: Readonly<Record<string, string | undefined>>;
  /** The trace that the job belongs to; null for none. */
  readonly trace?: TraceContext | null;
  /** Variables of the submission; they override the allow-list and nothing of the relay's own. */
  readonly spec: Readonly<Record<string, string>>;
  readonly jobId: string;
  readonly attempt: number;
  readonly cluster: string;
  /** The attempt's directory for event files. */
  readonly eventsDir: string;
  /** Variables with the paths of its inputs. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Directory of the relay's executable, looked at last, so that scripts find `clio-relay emit`; null for none. */
  readonly executableDir: string | null;
}

/** Variables of the worker that a job gets. Everything else stays behind, tokens above all. */
const ALLOWED: ReadonlySet<string> = new Set([
  // who and where (environ(7))
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "PATH",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  "HOSTNAME",
  "XDG_RUNTIME_DIR",
  "XDG_CONFIG_HOME",
  "XDG_CACHE_HOME",
  "XDG_DATA_HOME",
  "XDG_STATE_HOME",
  // environment modules and Lmod
  "MODULEPATH",
  "MODULESHOME",
  "MODULES_CMD",
  "LOADEDMODULES",
  "_LMFILES_",
  "LMOD_CMD",
  "LMOD_DIR",
  "LMOD_PKG",
  "BASH_ENV",
  "LD_LIBRARY_PATH",
  "MANPATH",
  // where the schedulers' own commands find their configuration
  "SLURM_CONF",
  "SGE_ROOT",
  "SGE_CELL",
  "SGE_CLUSTER_NAME",
  "PBS_CONF_FILE",
  // where batch users find room and their budget
  "SCRATCH",
  "WORK",
  "PROJECT",
  // trust and tickets of the site
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "KRB5CCNAME",
  // where JARVIS-CD has its configuration
  "JARVIS_ROOT",
]);

/** Where the installation that runs the job lies, so that `clio-relay` within the job finds the same. Relative ones are the worker's. */
const PLACES: ReadonlySet<string> = new Set([
  "CLIO_RELAY_HOME",
  "CLIO_RELAY_CORE_DIR",
  "CLIO_RELAY_SPOOL_DIR",
  "CLIO_RELAY_CLUSTER_REGISTRY",
  "CLIO_RELAY_REMOTE_MCP_CACHE",
]);

const PROXY = /^(?:HTTPS?|ALL|NO)_PROXY$/i;

/**
 * Variables are bytes, and the runtime puts this where they are no UTF-8 text. What it stood for is lost, also through a command that handed it on; with
 * it a value names another place than it did.
 */
const LOST = "\u{FFFD}";

/** Variables of the worker's that jobs should have had and do not get, or not whole. */
export const lostVariables = (worker: JobEnvironmentInput["worker"]): string[] =>
  Object.entries(worker).flatMap(([name, value]) => (value?.includes(LOST) && handedOn(name, value) !== null ? [name] : []));

/** What is left of a value: the places of a search path that are whole, else nothing. */
function whole(name: string, value: string): string | null {
  if (!value.includes(LOST)) return value;
  const places = name.endsWith("PATH") ? value.split(":").filter((place) => !place.includes(LOST)) : [];
  return places.length === 0 ? null : places.join(":");
}

/** What a job gets of a variable of the worker's; null when it stays behind. */
function handedOn(name: string, value: string): string | null {
  if (ALLOWED.has(name) || /^LC_[A-Z]+$/.test(name)) return value;
  if (PLACES.has(name)) return value === "" ? null : path.resolve(value);
  // The user information of a URL (RFC 3986, 3.2.1) ends in `@`, and nothing else in a proxy's address has one.
  if (PROXY.test(name)) return value.includes("@") ? null : value;
  return null;
}

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

/** What every job gets of the worker's environment, and what beside the worker looks after one. */
export function handedOnEnvironment(worker: JobEnvironmentInput["worker"]): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(worker)) {
    const left = value === undefined ? null : whole(name, value);
    const given = left === null ? null : handedOn(name, left);
    if (given !== null) environment[name] = given;
  }
  // A service manager may have started the worker with less than a login has.
  if (!environment.HOME || !environment.USER || !environment.LOGNAME || !environment.SHELL) {
    const { name, home, shell } = account(process.getuid?.() ?? 0);
    environment.HOME ||= home;
    environment.USER ||= name;
    environment.LOGNAME ||= name;
    environment.SHELL ||= shell;
  }
  environment.PATH ||= DEFAULT_PATH;
  return environment;
}

/** The complete environment of a job. */
export function jobEnvironment(input: JobEnvironmentInput): Record<string, string> {
  const merged = { ...handedOnEnvironment(input.worker), ...traceVariables(input.trace ?? null), ...input.spec };
  return {
    ...merged,
    ...(input.executableDir === null ? {} : { PATH: withDirectory(merged["PATH"] ?? DEFAULT_PATH, input.executableDir) }),
    ...input.inputs,
    CLIO_RELAY_JOB_ID: input.jobId,
    CLIO_RELAY_CLUSTER: input.cluster,
    CLIO_RELAY_EVENTS: input.eventsDir,
    [ATTEMPT_MARK]: attemptMark(input.jobId, input.attempt),
  };
}

/**
 * The trace as the job's own, under the names that programs look for (OpenTelemetry, Environment variables as context propagation carriers). The span is the submitter's: the relay reports none that could be in its place.
 */
const traceVariables = (trace: TraceContext | null): Record<string, string> => ({
  ...(trace === null ? {} : { TRACEPARENT: trace.traceparent }),
  ...(trace === null || trace.tracestate === null ? {} : { TRACESTATE: trace.tracestate }),
});

/** A search path with one more directory to look in at the end. An empty path means the working directory (exec(3)) and stays. */
const withDirectory = (search: string, directory: string): string =>
  search === "" || search.split(":").includes(directory) ? search : `${search}:${directory}`;

/**
 * The interpreter that a script's first line names, as arguments before the script's path (execve(2)): `#!/bin/bash -e` gives
 * ["/bin/bash", "-e"]; everything after the interpreter's path is one argument, so `#!/usr/bin/env -S python3 -u` gives
 * ["/usr/bin/env", "-S python3 -u"], which env(1) splits itself. Without a `#!` line: ["/bin/sh"].
 */
export function interpreterOf(script: string): string[] {
  const line = /^#!([^\r\n]*)/.exec(script)?.[1]?.trim() ?? "";
  const match = /^([^ \t]+)(?:[ \t]+(.*))?$/.exec(line);
  if (match === null) return ["/bin/sh"];
  const [, interpreter, argument] = match;
  return argument === undefined ? [interpreter!] : [interpreter!, argument];
}
