import fs from "node:fs";
import { HttpPeer } from "../../api/client/http-peer.ts";
import { type Environment, variable } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { RelayError } from "../../domain/errors.ts";
import { tryLock } from "../../lib/files/file-lock.ts";
import { PLAIN_COPIES } from "../../lib/system/plain-copies.ts";
import { startInBackground } from "../background.ts";
import { backgroundEnvironment } from "../background-environment.ts";
import { addressOf, readDaemonRecord } from "./address-file.ts";

const START_MS = 20_000;
/** How long a daemon that once answered may be silent. */
const SILENT_MS = 5_000;
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
  const begun = performance.now();
  const deadline = begun + START_MS;
  let started = false;
  while (!(await answers(paths, env))) {
    // One that has a record did answer once; the one that is just starting has none yet.
    const patience = readDaemonRecord(paths, env) === null ? START_MS : SILENT_MS;
    if (performance.now() - begun > patience) throw silent(paths, env);
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
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

async function start({ paths, env, self }: StartOptions, deadline: number): Promise<boolean> {
  const outcome = await startInBackground({
    command: [...self, "desktop", "run", "--background"],
    cwd: "/",
    environment: daemonEnvironment(paths, env),
    withinAttempt: variable(env, "CLIO_RELAY_ATTEMPT"),
    stderrFile: paths.desktopStderr,
    ready: () => answers(paths, env),
    withinMs: deadline - performance.now(),
  });
  if (outcome.state === "late") throw silent(paths, env);
  if (outcome.state === "ready") return true;
  // Code 0: another process was the daemon already; it answers soon.
  if (outcome.exitCode === 0) return false;
  const said = outcome.said === "" ? `exit code ${outcome.exitCode}` : outcome.said;
  throw new RelayError("desktop_unavailable", `the desktop daemon did not start: ${said}`);
}

function silent(paths: Paths, env: Environment): RelayError {
  const pid = readDaemonRecord(paths, env)?.process.pid;
  return new RelayError(
    "desktop_unavailable",
    pid === undefined ? "the desktop daemon does not answer" : `the desktop daemon, process ${pid}, does not answer`,
    pid === undefined ? {} : { pid },
  );
}

/** What finds the daemon's files and its way to the network. On Windows names are the same in any case. */
const KEPT = /^(?:HOME|USER|LOGNAME|PATH|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|XDG_\w+|SSL_CERT_\w+|\w+_PROXY|\w+_proxy|CLIO_RELAY_\w+)$/;
const KEPT_ON_WINDOWS =
  /^(?:PATH|PATHEXT|TEMP|TMP|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PROGRAMDATA|PROGRAMFILES|USERNAME|USERDOMAIN|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA|LOCALAPPDATA|SSL_CERT_\w+|\w+_PROXY|CLIO_RELAY_\w+)$/i;

const daemonEnvironment = (paths: Paths, env: Environment): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(backgroundEnvironment(paths, env)).filter(([name]) => (env.platform === "win32" ? KEPT_ON_WINDOWS : KEPT).test(name)),
  ),
  ...PLAIN_COPIES,
  BUN_CONFIG_MAX_HTTP_REQUESTS: MAX_REQUESTS,
});
