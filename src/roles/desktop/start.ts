import fs from "node:fs";
import path from "node:path";
import { HttpPeer } from "../../api/client.ts";
import { type Environment, variable } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { RelayError } from "../../domain/errors.ts";
import { makePrivateDirectory } from "../../lib/atomic-file.ts";
import { tryLock } from "../../lib/file-lock.ts";
import { addressOf, readDaemonRecord } from "./address-file.ts";

const START_MS = 20_000;
const ANSWER_MS = 2_000;
const POLL_MS = 15;

/** Concurrent requests that one process of Bun sends; the default of 256 would let 256 quiet streams hold up everything else. */
const MAX_REQUESTS = "16384";

export interface StartOptions {
  readonly paths: Paths;
  readonly env: Environment;
  /** How this program is run: the executable, or the runtime and the script. */
  readonly self: readonly string[];
}

/**
 * Make sure that the daemon runs and answers. Of several processes that want the same at once, the one that gets the start lock
 * starts it, the others wait for it to answer.
 *
 * @returns whether this call started it
 * @throws RelayError desktop_unavailable with what the daemon said when it could not start, or when it does not answer in time
 */
export async function ensureDesktop(options: StartOptions): Promise<boolean> {
  const { paths, env } = options;
  prepareRunDirectory(paths, env);
  const deadline = performance.now() + START_MS;
  let started = false;
  while (!(await answers(paths, env))) {
    if (performance.now() > deadline) throw silent(paths, env);
    const lock = tryLock(paths.desktopStartLock);
    try {
      if (lock !== null && !(await answers(paths, env))) {
        started = await start(options, deadline);
        continue;
      }
    } finally {
      lock?.release();
    }
    await Bun.sleep(POLL_MS);
  }
  return started;
}

/** Whether a daemon answers where its record, or the socket's path, says. */
export async function answers(paths: Paths, env: Environment): Promise<boolean> {
  const record = readDaemonRecord(paths, env);
  if (record === null && !fs.existsSync(paths.desktopSocket)) return false;
  try {
    const response = await new HttpPeer(addressOf(paths, record)).send("/healthz", { signal: AbortSignal.timeout(ANSWER_MS) });
    await response.arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

async function start({ paths, env, self }: StartOptions, deadline: number): Promise<boolean> {
  makePrivateDirectory(paths.logDir);
  const words = path.join(paths.logDir, "desktop-stderr.log");
  const fd = fs.openSync(words, "w", 0o600);
  const child = Bun.spawn([...self, "desktop", "run", "--background"], {
    cwd: "/",
    env: daemonEnvironment(paths, env),
    stdin: "ignore",
    stdout: "ignore",
    stderr: fd,
    detached: true,
  });
  fs.closeSync(fd);
  child.unref();
  while (child.exitCode === null && child.signalCode === null) {
    if (await answers(paths, env)) return true;
    if (performance.now() > deadline) throw silent(paths, env);
    await Bun.sleep(POLL_MS);
  }
  // Code 0: another process was the daemon already; it answers soon.
  if (child.exitCode === 0) return false;
  const said = fs.readFileSync(words, "utf8").trim().slice(-1_000);
  throw new RelayError("desktop_unavailable", `the desktop daemon did not start: ${said === "" ? `exit code ${child.exitCode}` : said}`);
}

function silent(paths: Paths, env: Environment): RelayError {
  const pid = readDaemonRecord(paths, env)?.process.pid;
  return new RelayError(
    "desktop_unavailable",
    pid === undefined ? "the desktop daemon does not answer" : `the desktop daemon, process ${pid}, does not answer`,
    pid === undefined ? {} : { pid },
  );
}

const KEPT =
  /^(?:HOME|USER|LOGNAME|PATH|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|SystemRoot|USERPROFILE|APPDATA|LOCALAPPDATA|XDG_\w+|SSL_CERT_\w+|\w+_PROXY|\w+_proxy)$/;
/** Ours that belong to one request or to one job, and never to the daemon. */
const NOT_KEPT = /^CLIO_RELAY_(?:CLUSTER|EVENTS|ATTEMPT|JOB_ID|TASK_ID|NO_INPUT)$/;

/** The daemon's environment: what finds its files and its way to the network; nothing of the terminal, the directory or the agent. */
function daemonEnvironment(paths: Paths, env: Environment): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env.variables)) {
    if (value !== undefined && (KEPT.test(name) || (name.startsWith("CLIO_RELAY_") && !NOT_KEPT.test(name)))) kept[name] = value;
  }
  // Paths that were relative to the caller's directory.
  if (variable(env, "CLIO_RELAY_HOME") !== undefined) kept["CLIO_RELAY_HOME"] = paths.base;
  if (variable(env, "CLIO_RELAY_CORE_DIR") !== undefined) kept["CLIO_RELAY_CORE_DIR"] = paths.coreRoot;
  if (variable(env, "CLIO_RELAY_SPOOL_DIR") !== undefined) kept["CLIO_RELAY_SPOOL_DIR"] = paths.spoolRoot;
  if (variable(env, "CLIO_RELAY_CLUSTER_REGISTRY") !== undefined) kept["CLIO_RELAY_CLUSTER_REGISTRY"] = paths.clustersFile;
  return { ...kept, BUN_CONFIG_MAX_HTTP_REQUESTS: MAX_REQUESTS };
}
