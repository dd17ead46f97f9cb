import type { Duplex } from "node:stream";
import * as v from "valibot";
import type { SshEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { type Found, findWorker, isOf } from "../../transport/bring-up/find-worker.ts";
import { ChannelPool } from "../../transport/http/channel-pool.ts";
import type { LinkTransport } from "../../transport/link.ts";
import { remoteOver } from "../../transport/script/remote.ts";
import { hopSsh, type SshConnection } from "../../transport/ssh/connect.ts";
import type { SshRequest } from "../../transport/ssh/request.ts";
import type { Attended } from "./attended-run.ts";

export interface Arrival {
  readonly connection: SshConnection;
  readonly found: Found;
}

/**
 * From a session with a login node to the host that has the worker: the pins of the entry are held against where it has led, and from another node of
 * the cluster it goes on to the right one.
 *
 * @throws RelayError wrong_login_node, link_bringup_failed; as findWorker and hopSsh
 */
export async function arrive(entry: SshEntry, first: SshConnection, request: SshRequest, attended: Attended): Promise<Arrival> {
  const { signal } = attended.attending;
  const place = { cluster: entry.name, coreDir: entry.core_dir };
  const found = await findWorker(remoteOver(first.session), place, signal);
  const { worker } = found;
  if (worker === null || isOf(worker, found)) {
    checkName(entry, found.hostname);
    return { connection: first, found };
  }
  const other = worker.process.hostname;
  attended.progress(`the worker is on ${other}, and this is ${found.hostname}: going on to it`);
  let connection: SshConnection;
  try {
    connection = await hopSsh(first, { host: other }, request);
  } catch (error) {
    throw wrongNode(entry.name, found.hostname, other, error);
  }
  try {
    const there = await findWorker(remoteOver(connection.session), place, signal);
    if (there.worker !== null && !isOf(there.worker, there)) throw wrongNode(entry.name, there.hostname, there.worker.process.hostname);
    checkName(entry, there.hostname);
    return { connection, found: there };
  } catch (error) {
    connection.session.close();
    throw error;
  }
}

function wrongNode(cluster: string, here: string, there: string, cause?: unknown): RelayError {
  const why = cause instanceof Error ? `, and that cannot be reached from there: ${cause.message}` : "";
  return new RelayError(
    "wrong_login_node",
    `the login node that answered is ${here}; the worker of ${cluster} is on ${there}${why}`,
    { cluster, reached: here, worker_host: there },
    `set HostName ${there} for this host in ssh_config, or clio-relay cluster add ${cluster} --ssh-host ${there}`,
    { cause },
  );
}

function checkName({ name, target_identity: { hostnames } }: SshEntry, found: string): void {
  if (hostnames.length === 0 || hostnames.includes(found)) return;
  throw new RelayError(
    "wrong_login_node",
    `the host that answered is ${found}, and the entry of ${name} pins ${hostnames.join(" or ")}`,
    { cluster: name, reached: found, pinned: hostnames },
    `clio-relay cluster pin-target ${name} --target-hostname ${found} takes this one`,
  );
}

/**
 * The way to the worker's socket on its own host; a first channel shows that it is open.
 *
 * @throws RelayError relay_not_installed, worker_not_running, link_bringup_failed
 */
export async function reachWorker(cluster: string, { connection, found }: Arrival, signal: AbortSignal): Promise<LinkTransport> {
  const { worker, runsHere, installed, root, hostname } = found;
  if (worker === null || !runsHere) {
    if (!installed) {
      throw new RelayError(
        "relay_not_installed",
        `clio-relay is not installed on ${hostname}, in ${root}`,
        { cluster, host: hostname, root },
        `clio-relay cluster bootstrap --cluster ${cluster}`,
      );
    }
    throw notRunning(cluster, hostname);
  }
  const { session } = connection;
  let first: Duplex | null = await session.openSocket(worker.socket, signal).catch((error: unknown) => {
    throw refusal(cluster, hostname, error);
  });
  const open: LinkTransport["open"] = (wanted) => {
    const ready = first;
    first = null;
    return ready === null || ready.destroyed ? session.openSocket(worker.socket, wanted) : Promise.resolve(ready);
  };
  return { session, open };
}

const Counts = v.object({ active_leases_by_kind: v.record(v.string(), v.number()), queued_by_kind: v.record(v.string(), v.number()) });
const Workers = v.object({ workers: v.array(Counts) });
const STATUS_MAX_BYTES = 1024 * 1024;

/** Jobs that have not ended, as the worker says. Null where none answers. */
export async function activeJobs(cluster: string, arrival: Arrival, signal: AbortSignal): Promise<number | null> {
  const { worker, runsHere } = arrival.found;
  if (worker === null || !runsHere) return null;
  const { open } = await reachWorker(cluster, arrival, signal);
  const pool = new ChannelPool({ open });
  try {
    const { status, body } = await pool.request({ method: "GET", target: "/workers", headers: new Headers(), body: null }, signal);
    const bytes = body instanceof Uint8Array ? body : await new Response(body).bytes();
    if (status !== 200 || bytes.length > STATUS_MAX_BYTES) return null;
    const { workers } = v.parse(Workers, JSON.parse(Buffer.from(bytes).toString("utf8")));
    const counts = workers.flatMap((one) => [...Object.values(one.active_leases_by_kind), ...Object.values(one.queued_by_kind)]);
    return counts.reduce((sum, count) => sum + count, 0);
  } finally {
    pool.close(new Error("asked"));
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

function refusal(cluster: string, host: string, error: unknown): unknown {
  if (!(error instanceof RelayError) || error.code !== "channel_refused") return error;
  if (error.data["reason"] === "connect_failed") return notRunning(cluster, host, error);
  return new RelayError(
    "link_bringup_failed",
    `${host} does not forward sockets (${String(error.data["reason"])})`,
    { cluster, host, reason: error.data["reason"] },
    "AllowStreamLocalForwarding of its sshd",
    { cause: error },
  );
}
