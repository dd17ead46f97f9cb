import * as v from "valibot";
import type { PairClusterRequest } from "../../api/desktop/pairing-views.ts";
import { ClusterEntry, type RelayEntry, sharedOf } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import { relayToken } from "../../config/relay-token.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { LinkInfo } from "../../domain/link.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import { ChannelPool } from "../../transport/http/channel-pool.ts";
import type { Ledger } from "../../transport/ledger.ts";
import { readLinkInfo } from "../../transport/link-version.ts";
import { pairWorker } from "../../transport/meet.ts";
import type { CaFile } from "../../transport/outbound/certificates.ts";
import { readCode } from "../../transport/pairing/code.ts";
import { pairingRefused } from "../../transport/pairing/pair.ts";
import { lineOfPublicKey } from "../../transport/session/keys.ts";
import type { Session } from "../../transport/session/session.ts";
import { desktopKey, ownName } from "./desktop-key.ts";

/** How long the worker may take that is not at the relay-host, and everything together; milliseconds. */
const WAIT_MS = 5_000;
const WITHIN_MS = 60_000;

export interface PairingSurroundings {
  readonly env: Environment;
  readonly version: string;
  readonly configDir: string;
  readonly ledger: () => Ledger;
  /** @param relayCaFile of the entry */
  readonly caFiles: (relayCaFile: string | null) => readonly CaFile[];
}

/**
 * Have this desktop's key let in by the worker that made a code.
 *
 * @param before the entry of that name, which the new one takes the place of; null: none
 * @returns the entry by which that worker is met from now on; nothing is written
 * @throws RelayError pairing_code_invalid and state_conflict (the name is that of a cluster of this machine), before anything is dialed; pairing_refused; host_key_changed where somebody else answers; worker_absent, relay_token_refused
 *   and what else meeting at a relay-host may fail with; observation_timeout; the signal's reason
 */
export async function pairCluster(
  name: string,
  before: ClusterEntry | null,
  { code: line, entry, request }: PairClusterRequest,
  { env, version, configDir, ledger, caFiles }: PairingSurroundings,
  asked: AbortSignal,
): Promise<RelayEntry> {
  const code = readCode(line);
  if (before?.mode === "local") {
    throw new RelayError(
      "state_conflict",
      `${name} is the name of a cluster of this machine`,
      { cluster: name },
      "another --name, which is yours to choose",
    );
  }
  const url = parseRelayUrl(code.relayHost);
  const wanted = { ...keptOf(before), ...entry, name, mode: "relay", relay_host: url.text };
  const place = {
    url,
    token: relayToken(env, entry.relay_token_file),
    surroundings: { variables: { ...env.variables, ...request.variables }, caFiles: caFiles(entry.relay_ca_file ?? null) },
    version,
  };
  const limit = AbortSignal.timeout(WITHIN_MS);
  const signal = AbortSignal.any([asked, limit]);
  try {
    const dials = { ledger: ledger(), cluster: name, requestedBy: request.requested_by, signal };
    const { session, workerKey } = await pairWorker(place, dials, {
      code,
      privateKey: desktopKey(configDir),
      comment: ownName(),
      waitMs: WAIT_MS,
    });
    try {
      const { cluster, worker_id, next_host_key } = await whoAnswers(session, signal);
      const pins = { worker_key: lineOfPublicKey(workerKey), next_worker_key: next_host_key, worker_id };
      const paired = v.parse(ClusterEntry, { ...wanted, ...pins, worker_cluster: cluster === name ? null : cluster });
      return paired as RelayEntry;
    } finally {
      session.close();
    }
  } catch (error) {
    if (limit.aborted && !asked.aborted)
      throw new RelayError("observation_timeout", "the worker was not met within a minute", {}, undefined, { cause: error });
    // A worker that knows nothing of the code does not come for it.
    throw isRelayError(error, "join_refused") ? pairingRefused("unknown", error) : error;
  }
}

/** What an entry says of the cluster and its host, which has nothing to do with who is met at a relay-host. */
function keptOf(entry: ClusterEntry | null) {
  if (entry === null || entry.mode === "local") return {};
  // These the request says, by leaving them out, too.
  const { env_setup_strict: _, scheduler_provider: __, ...shared } = sharedOf(entry);
  const { ssh_host, ssh_client, core_dir, spool_dir, target_identity } = entry;
  return { ...shared, ssh_host, ssh_client, core_dir, spool_dir, target_identity };
}

/** @throws RelayError answer_malformed, version_mismatch for a worker that cannot say who it is */
async function whoAnswers(session: Session, signal: AbortSignal): Promise<LinkInfo> {
  const pool = new ChannelPool({ open: (wanted) => session.openSocket("/", wanted) });
  try {
    const info = readLinkInfo(await pool.request({ method: "GET", target: "/link", headers: new Headers(), body: null }, signal));
    if (info !== null) return info;
    throw new RelayError("version_mismatch", "the worker is too old to say who it is: upgrade clio-relay on the cluster");
  } finally {
    pool.close(new Error("asked"));
  }
}
