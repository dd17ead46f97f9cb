import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { sha256Hex } from "../lib/digest.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import { fileSystemKind, isSurelyLocal } from "../lib/files/file-system.ts";
import { type Environment, variable } from "./environment.ts";

/** Where an installation keeps what. Directories need not exist; nothing is made here. */
export interface Paths {
  /** The directory that makes the installation what it is: CLIO_RELAY_HOME, or the user's home. */
  readonly base: string;
  readonly configDir: string;
  readonly clustersFile: string;
  readonly settingsFile: string;
  /** What the daemon serves on TCP, and the token for it where no other file was named. */
  readonly listenerFile: string;
  readonly apiTokenFile: string;
  readonly cacheDir: string;
  readonly logDir: string;
  /** Every SSH connection that the daemon dialed. */
  readonly ledgerFile: string;
  /** What MCP servers on clusters were found to have, and which of it was accepted. */
  readonly remoteMcpCacheFile: string;
  /** The job that was submitted last from here. */
  readonly lastJobFile: string;
  /** Programs of frp that were installed. */
  readonly frpDir: string;
  readonly desktopLog: string;
  /** What the daemon says outside its log: a crash of the runtime. */
  readonly desktopStderr: string;
  /** Parents of all clusters' state and output. */
  readonly coreRoot: string;
  readonly spoolRoot: string;
  /** State of a cluster's worker; on its host. */
  readonly coreDir: (cluster: string) => string;
  /** What the jobs of a cluster write; on its host. */
  readonly spoolDir: (cluster: string) => string;
  readonly workerLog: (cluster: string) => string;
  /** Node-local and private; see run-directory.ts. */
  readonly runDir: string;
  readonly desktopSocket: string;
  /** Held by the running daemon for as long as it lives. */
  readonly desktopLock: string;
  /** Held by whoever starts the daemon until it answers. */
  readonly desktopStartLock: string;
  /** Address and token of a daemon that listens on loopback. */
  readonly desktopAddress: string;
  readonly workerSocket: (cluster: string) => string;
  /** Where the worker answers sessions with an identity of its own. */
  readonly workerLinkSocket: (cluster: string) => string;
  /** Held while a worker is started in the background. */
  readonly workerStartLock: (cluster: string) => string;
}

/** Size of sun_path less its final NUL: unix(7) has 108 bytes, macOS 104. */
const socketPathMax = (platform: NodeJS.Platform): number => (platform === "linux" ? 107 : 103);
/** The longest name in the run directory, with its slash. */
const SOCKET_NAME_MAX = 40;

/** Kinds of file systems, as mountinfo names them, where a socket file does not lead to a process on this machine. */
const NETWORK_KINDS =
  /^(?:nfs|cifs|smb|lustre$|gpfs$|beegfs|ceph$|afs$|9p$|panfs|wekafs|orangefs|pvfs2|glusterfs|ocfs2|gfs2|fuse\.(?!overlayfs))/;

function requireAbsolute(env: Environment, name: string, named: string): string {
  if (path.isAbsolute(named)) return path.resolve(named);
  throw new RelayError(
    "configuration_error",
    `${name} is ${JSON.stringify(named.slice(0, 200))}, but must be an absolute path`,
    { variable: name },
    `${name}=${path.resolve(env.cwd, named)}`,
  );
}

/** A place that need not be there yet, but where something else is, nothing can be made. */
function requireRoomFor(name: string, directory: string): string {
  const blocking = notADirectory(directory);
  if (blocking === null) return directory;
  throw new RelayError(
    "configuration_error",
    `${name} is ${JSON.stringify(directory.slice(0, 200))}, but ${JSON.stringify(blocking.slice(0, 200))} is not a directory`,
    { variable: name, path: blocking },
    `${name}=DIR, where DIR is a directory of yours or is still to be made`,
  );
}

/** The part of a path that is there and is no directory. */
function notADirectory(directory: string): string | null {
  for (let at = directory; ; at = path.dirname(at)) {
    try {
      return fs.statSync(at).isDirectory() ? null : at;
    } catch (error) {
      // What cannot be looked at for another reason is told by whoever needs it.
      if (!isErrno(error, "ENOTDIR")) return null;
    }
  }
}

/**
 * Decide where everything lies. With CLIO_RELAY_HOME everything lies below it, so that installations live side by side. Worker, daemon and CLI must come to the same answer, whatever
 * shell, service or cron job started them.
 *
 * @throws RelayError configuration_error when one of the places, or the home directory where it is needed, is relative: the installation,
 *   with its daemon and its workers, stays the same from whatever directory a command is typed in, and so must they; or where a file is in the place of the directory
 */
export function resolvePaths(env: Environment): Paths {
  const given = variable(env, "CLIO_RELAY_HOME");
  const home = given === undefined ? null : requireRoomFor("CLIO_RELAY_HOME", requireAbsolute(env, "CLIO_RELAY_HOME", given));
  if (home === null) requireAbsolute(env, "HOME", env.home);
  const absolute = (name: string, fallback: string): string => requireAbsolute(env, name, variable(env, name) ?? fallback);
  const below = (own: string, usual: string): string => (home === null ? path.join(env.home, usual) : path.join(home, own));

  const configDir = below("config", ".config/clio-relay");
  const root = (name: string, fallback: string): string => requireRoomFor(name, absolute(name, fallback));
  const coreRoot = root("CLIO_RELAY_CORE_DIR", below("core", ".local/share/clio-relay/core"));
  const spoolRoot = root("CLIO_RELAY_SPOOL_DIR", below("spool", ".local/share/clio-relay/spool"));
  const logDir = below("log", ".local/state/clio-relay/log");
  const stateDir = below("state", ".local/state/clio-relay");
  const runDir = chooseRunDirectory(env, home);
  return {
    base: home ?? env.home,
    configDir,
    clustersFile: absolute("CLIO_RELAY_CLUSTER_REGISTRY", path.join(configDir, "clusters.json")),
    settingsFile: path.join(configDir, "config.toml"),
    listenerFile: path.join(configDir, "api-listener.json"),
    apiTokenFile: path.join(configDir, "api-token"),
    cacheDir: below("cache", ".cache/clio-relay"),
    logDir,
    ledgerFile: path.join(stateDir, "connections.jsonl"),
    remoteMcpCacheFile: absolute("CLIO_RELAY_REMOTE_MCP_CACHE", path.join(stateDir, "remote-mcp-cache.json")),
    lastJobFile: path.join(stateDir, "last-job.json"),
    frpDir: path.join(stateDir, "frp"),
    desktopLog: path.join(logDir, "desktop.log"),
    desktopStderr: path.join(logDir, "desktop-stderr.log"),
    coreRoot,
    spoolRoot,
    coreDir: (cluster) => path.join(coreRoot, cluster),
    spoolDir: (cluster) => path.join(spoolRoot, cluster),
    workerLog: (cluster) => path.join(logDir, `worker-${cluster}.log`),
    runDir,
    desktopSocket: path.join(runDir, "desktop.sock"),
    desktopLock: path.join(runDir, "desktop.lock"),
    desktopStartLock: path.join(runDir, "desktop-start.lock"),
    desktopAddress: path.join(runDir, "desktop.json"),
    workerSocket: (cluster) => path.join(runDir, `${socketName(cluster)}.sock`),
    workerLinkSocket: (cluster) => path.join(runDir, `link-${shortName(cluster)}.sock`),
    workerStartLock: (cluster) => path.join(runDir, `${socketName(cluster)}-start.lock`),
  };
}

/** `worker-NAME`, with the end of a long name replaced by its digest. */
const socketName = (cluster: string): string => `worker-${shortName(cluster)}`;

const shortName = (cluster: string): string =>
  cluster.length <= 24 ? cluster : `${cluster.slice(0, 11)}-${sha256Hex(cluster).slice(0, 12)}`;

function chooseRunDirectory(env: Environment, home: string | null): string {
  if (home !== null) {
    const own = path.join(home, "run");
    if (env.platform === "win32") return own;
    if (fitsSockets(own, env) && (isSurelyLocal(own) || !NETWORK_KINDS.test(fileSystemKind(own)))) return own;
  }
  return runtimeDirectory(env, sha256Hex(existingPart(home ?? env.home)).slice(0, 16));
}

/**
 * Where this user's sockets of an installation lie on this machine. Without XDG_RUNTIME_DIR (cron, su) the directory that a
 * login would have named is looked for, so that both find the same daemon.
 */
function runtimeDirectory(env: Environment, installation: string): string {
  const named = variable(env, "XDG_RUNTIME_DIR");
  for (const root of [...(named === undefined ? [] : [named]), `/run/user/${env.uid}`]) {
    const directory = path.join(root, "clio-relay", installation);
    if (env.platform === "linux" && isPrivateDirectory(root, env.uid) && fitsSockets(directory, env)) return directory;
  }
  return path.join(env.temporary, env.uid < 0 ? "clio-relay" : `clio-relay-${env.uid}`, installation);
}

const fitsSockets = (directory: string, env: Environment): boolean =>
  Buffer.byteLength(directory) + SOCKET_NAME_MAX <= socketPathMax(env.platform);

/** What the XDG base directory specification asks of XDG_RUNTIME_DIR: owned by the user, mode 0700. */
function isPrivateDirectory(directory: string, uid: number): boolean {
  if (!path.isAbsolute(directory)) return false;
  let stat: fs.Stats;
  try {
    stat = fs.lstatSync(directory);
  } catch (error) {
    if (isErrno(error, "ENOENT", "EACCES", "ENOTDIR", "ELOOP")) return false;
    throw error;
  }
  return stat.isDirectory() && stat.uid === uid && (stat.mode & 0o077) === 0;
}

/** Whether two absolute paths lead to the same place, be there something or not yet. */
export const samePlace = (one: string, other: string): boolean => one === other || existingPart(one) === existingPart(other);

/** The path without symbolic links, as far as it exists, so that an installation has one name. */
function existingPart(target: string): string {
  try {
    return fs.realpathSync(target);
  } catch (error) {
    if (!isErrno(error, "ENOENT", "EACCES", "ENOTDIR", "ELOOP")) throw error;
    const parent = path.dirname(target);
    return parent === target ? target : path.join(existingPart(parent), path.basename(target));
  }
}
