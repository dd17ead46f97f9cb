import type { Duplex } from "node:stream";
import * as v from "valibot";
import type { SshEntry } from "../../config/cluster-entry.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { bridgeCommand, newNonce, openBridge } from "../../transport/bring-up/bridge.ts";
import { type Found, findWorker, isOf } from "../../transport/bring-up/find-worker.ts";
import { ChannelPool } from "../../transport/http/channel-pool.ts";
import type { LinkTransport } from "../../transport/link-transport.ts";
import { execInTurn, remoteOver } from "../../transport/script/remote.ts";
import type { Session } from "../../transport/session/session.ts";
import type { WorkerSessionKeys } from "../../transport/session/worker-session.ts";
import type { HeldConnection } from "../../transport/ssh/held.ts";
import type { SshRequest } from "../../transport/ssh/request.ts";
import type { Attended } from "./attended-run.ts";
import { asksForSite, checkPins, checkSite } from "./target-pins.ts";

export interface Arrival {
  readonly connection: HeldConnection;
  readonly found: Found;
}

/**
 * From a session with a login node to the host that has the worker: the pins of the entry are held against where it has led, and from another node of
 * the cluster it goes on to the right one.
 *
 * @throws RelayError wrong_login_node, wrong_site, link_bringup_failed; as findWorker and HeldConnection.goOn
 */
export async function arrive(entry: SshEntry, first: HeldConnection, request: SshRequest, attended: Attended): Promise<Arrival> {
  const { signal } = attended.attending;
  const place = { cluster: entry.name, coreDir: entry.core_dir, site: asksForSite(entry) };
  const found = await findWorker(remoteOver(first.session), place, signal).catch((error: unknown) => {
    throw isRelayError(error, "channel_refused") ? noSession(entry, error) : error;
  });
  const { worker } = found;
  if (worker === null || isOf(worker, found)) {
    checkPins(entry, found);
    return { connection: first, found };
  }
  checkSite(entry, found);
  const other = worker.process.hostname;
  attended.progress(`the worker is on ${other}, and this is ${found.hostname}: going on to it`);
  let connection: HeldConnection;
  try {
    connection = await first.goOn(other, request);
  } catch (error) {
    throw wrongNode(entry.name, found.hostname, other, error);
  }
  try {
    const there = await findWorker(remoteOver(connection.session), place, signal);
    if (there.worker !== null && !isOf(there.worker, there)) throw wrongNode(entry.name, there.hostname, there.worker.process.hostname);
    checkPins(entry, there);
    return { connection, found: there };
  } catch (error) {
    connection.session.close();
    throw error;
  }
}

/** Where no sockets are forwarded the link is a session as well, and the site counts them. */
const noSession = ({ name, ssh_host }: SshEntry, cause: RelayError): RelayError =>
  new RelayError(
    "channel_refused",
    `${ssh_host} allows no further session on this connection (MaxSessions of its sshd)`,
    { ...cause.data, cluster: name },
    `where the link is up: clio-relay disconnect ${name}, then this, then clio-relay connect ${name}; where it is not, that sshd allows no session at all (MaxSessions 0), ` +
      "and nothing can be started there until its administrators allow one; with MaxSessions 2 or more it needs no disconnect",
    { cause },
  );

function wrongNode(cluster: string, here: string, there: string, cause?: unknown): RelayError {
  const why = cause instanceof Error ? `, and that cannot be reached from there: ${cause.message}` : "";
  return new RelayError(
    "wrong_login_node",
    `the login node that answered is ${here}; the worker of ${cluster} is on ${there}${why}`,
    { cluster, reached: here, worker_host: there },
    `set HostName ${there} for this host in ssh_config, or clio-relay cluster add ${cluster} --ssh-host ${there}${
      cause === undefined ? "" : `; if ${there} is gone for good: clio-relay worker run --take-over --confirm-host-dead, on ${here}`
    }`,
    { cause },
  );
}

/** Who the two are in the worker's own sessions; null where bootstrap has not told. */
export type BridgeKeys = WorkerSessionKeys | null;

/** A way to a worker, whose socket may be another one when the worker is. */
export interface Reached extends LinkTransport {
  /** Where it serves from now on; a bridge finds that by itself. */
  readonly moved: (socket: string) => void;
}

/**
 * The way to the worker on its own host: a channel to its socket, which the first one shows to be open, or where the site forwards none, its own session
 * over the bridge.
 *
 * @throws RelayError relay_not_installed, worker_not_running, link_bringup_failed
 */
export async function reachWorker(entry: SshEntry, arrival: Arrival, keys: BridgeKeys, signal: AbortSignal): Promise<Reached> {
  let socket = servingSocket(entry.name, arrival);
  const { session } = arrival.connection;
  let first: Duplex | null;
  try {
    first = await session.openSocket(socket, signal);
  } catch (error) {
    if (!isRelayError(error, "channel_refused")) throw error;
    // sshd says `connect_failed` where it may not forward, too; but the worker's process is there.
    return { ...(await bridged(entry, arrival, keys, error, signal)), moved: () => undefined };
  }
  const open: LinkTransport["open"] = (wanted) => {
    const ready = first;
    first = null;
    return ready === null || ready.destroyed ? session.openSocket(socket, wanted) : Promise.resolve(ready);
  };
  const moved = (to: string): void => {
    socket = to;
  };
  return { session, held: true, open, moved };
}

/** Where the worker serves. @throws RelayError relay_not_installed, worker_not_running */
export function servingSocket(cluster: string, { found: { worker, runsHere, installed, root, hostname } }: Arrival): string {
  if (worker !== null && runsHere) return worker.socket;
  if (installed) throw notRunning(cluster, hostname);
  throw notInstalled(cluster, { hostname, root });
}

/** Nothing is there that could be started. */
export const notInstalled = (cluster: string, { hostname, root }: Pick<Found, "hostname" | "root">): RelayError =>
  new RelayError(
    "relay_not_installed",
    `clio-relay is not installed on ${hostname}, in ${root}`,
    { cluster, host: hostname, root },
    `clio-relay cluster bootstrap --cluster ${cluster}`,
  );

async function bridged(
  entry: SshEntry,
  { connection, found }: Arrival,
  keys: BridgeKeys,
  refused: RelayError,
  signal: AbortSignal,
): Promise<LinkTransport> {
  const reason = String(refused.data["reason"]);
  if (keys === null) {
    throw new RelayError(
      "link_bringup_failed",
      `${found.hostname} forwards nothing to the worker's socket (${reason}), and for a bridge bootstrap has not exchanged keys yet`,
      { cluster: entry.name, host: found.hostname, reason },
      `clio-relay cluster bootstrap --cluster ${entry.name}`,
      { cause: refused },
    );
  }
  const nonce = newNonce();
  try {
    const { stream, stderr } = await execInTurn(
      connection.session,
      bridgeCommand({ cluster: entry.name, home: entry.core_dir, nonce }),
      signal,
    );
    stderr.resume();
    return overBridge((await openBridge(stream, { cluster: entry.name, nonce }, keys, signal)).session);
  } catch (error) {
    if (!isRelayError(error)) throw error;
    const what = `${found.hostname} forwards nothing to the worker's socket (${reason}), and the bridge failed: ${error.message}`;
    throw new RelayError(error.code === "channel_refused" ? "link_bringup_failed" : error.code, what, { ...error.data }, error.hint, {
      cause: error,
    });
  }
}

/** A session of the worker's own: it joins each channel with its HTTP socket, whatever it is called. */
export const overBridge = (session: Session): LinkTransport => ({ session, open: (signal) => session.openSocket("/", signal) });

const Counts = v.object({ active_leases_by_kind: v.record(v.string(), v.number()), queued_by_kind: v.record(v.string(), v.number()) });
const Workers = v.object({ workers: v.array(Counts) });
const STATUS_MAX_BYTES = 1024 * 1024;
const STATUS_MS = 20_000;

/** Jobs that have not ended, as the worker says. Null where none answers. */
export async function activeJobs(entry: SshEntry, arrival: Arrival, keys: BridgeKeys, signal: AbortSignal): Promise<number | null> {
  const bytes = arrival.found.runsHere ? await workersOf(entry, arrival, keys, signal) : null;
  if (bytes === null || bytes.length === 0) return null;
  const { workers } = v.parse(Workers, JSON.parse(Buffer.from(bytes).toString("utf8")));
  const counts = workers.flatMap((one) => [...Object.values(one.active_leases_by_kind), ...Object.values(one.queued_by_kind)]);
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Whether the worker's process is there and answers nothing. What cannot be asked is not silent. */
export async function isSilent(entry: SshEntry, arrival: Arrival, keys: BridgeKeys, signal: AbortSignal): Promise<boolean> {
  if (!arrival.found.runsHere) return false;
  try {
    return (await workersOf(entry, arrival, keys, signal)) === null;
  } catch (error) {
    signal.throwIfAborted();
    // Where sockets are not forwarded it is the bridge that hears nothing; without keys there is none.
    return keys !== null && isRelayError(error, "link_bringup_failed");
  }
}

/** The worker's own account of its jobs; empty where it gives none, null where it does not answer in time. */
async function workersOf(entry: SshEntry, arrival: Arrival, keys: BridgeKeys, signal: AbortSignal): Promise<Uint8Array | null> {
  const { session, open } = await reachWorker(entry, arrival, keys, signal);
  const pool = new ChannelPool({ open });
  const limit = AbortSignal.timeout(STATUS_MS);
  try {
    const request = { method: "GET", target: "/workers", headers: new Headers(), body: null };
    const { status, body } = await pool.request(request, AbortSignal.any([signal, limit]));
    const bytes = body instanceof Uint8Array ? body : await new Response(body).bytes();
    return status === 200 && bytes.length <= STATUS_MAX_BYTES ? bytes : new Uint8Array();
  } catch (error) {
    if (limit.aborted && !signal.aborted) return null;
    throw error;
  } finally {
    pool.close(new Error("asked"));
    // A bridge was for this question only.
    if (session !== arrival.connection.session) session.close();
  }
}

const notRunning = (cluster: string, host: string, cause?: unknown): RelayError =>
  new RelayError(
    "worker_not_running",
    `no worker is running for ${cluster} on ${host}`,
    { cluster, host },
    `clio-relay worker start --cluster ${cluster}`,
    { cause },
  );
