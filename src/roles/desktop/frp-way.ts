import path from "node:path";
import { type ClusterEntry, type FrpEntry, isFrp } from "../../config/cluster-entry.ts";
import { type Environment, variable } from "../../config/environment.ts";
import { readRoom } from "../../config/frp-room.ts";
import type { Paths } from "../../config/paths.ts";
import { RelayError } from "../../domain/errors.ts";
import type { FrpRoom } from "../../domain/frp.ts";
import { settleFailure } from "../../transport/dial.ts";
import { frpServer } from "../../transport/frp/place.ts";
import { frpcFor, ownPlatform } from "../../transport/frp/programs.ts";
import { TwoWays } from "../../transport/frp/two-ways.ts";
import { type FrpVisit, serverText, visit } from "../../transport/frp/visit.ts";
import type { Ledger } from "../../transport/ledger.ts";
import type { LinkTransport } from "../../transport/link-transport.ts";
import type { CaFile } from "../../transport/outbound/certificates.ts";
import { openWorkerSession, type WorkerSessionKeys } from "../../transport/session/worker-session.ts";

import type { FrpWanted } from "./host-tasks.ts";

const FRPC_BIN = "CLIO_RELAY_FRPC_BIN";

export interface FrpWay {
  readonly entry: FrpEntry;
  readonly keys: WorkerSessionKeys;
  readonly ledger: Pick<Ledger, "beginUnattended">;
  readonly paths: Pick<Paths, "runDir" | "configDir" | "frpDir">;
  readonly env: Environment;
  /** What a person's command has around it, where it is different. */
  readonly variables: Environment["variables"];
  readonly caFiles: readonly CaFile[];
  /** Whose dial it is, for the ledger. */
  readonly requestedBy: string;
  readonly report: (error: unknown) => void;
  /** Told when there is no direct way. */
  readonly onFallback: (reason: RelayError) => void;
  /** Told when new channels go over another way than before. */
  readonly onCarrier?: (carrier: FrpEntry["mode"]) => void;
  /** For a worker that is not there; left out: it is not waited for. */
  readonly wait?: NonNullable<FrpVisit["wait"]>;
  /** One visitor of a name at a time; the cluster's when left out. */
  readonly name?: string;
}

export interface FrpTransport extends LinkTransport {
  /** What carries new channels; as long as the direct way is looked for, frps does. */
  readonly carrier: () => FrpEntry["mode"];
  /** Resolves when it is known whether there is a direct way; never rejects. */
  readonly looked: Promise<void>;
}

/** The frpc of this machine: the one that a variable names, or that was installed. @throws RelayError frp_not_installed */
export function ownFrpc(env: Environment, { frpDir }: Pick<Paths, "frpDir">): string {
  const named = variable(env, FRPC_BIN);
  if (named === undefined) return frpcFor(frpDir, ownPlatform()).file;
  const found = Bun.which(named, { PATH: env.variables["PATH"] ?? "" });
  if (found !== null) return found;
  throw new RelayError(
    "frp_not_installed",
    `${FRPC_BIN} names ${named}, which is no program that can be run here`,
    { path: named },
    `unset ${FRPC_BIN}, then clio-relay install-frp; clio-relay desktop stop ends a daemon that was started with the variable`,
  );
}

function roomOf({ name, frp }: FrpEntry, paths: Pick<Paths, "configDir">, env: Environment): FrpRoom {
  const room = readRoom(paths, name, env);
  if (room !== null) return room;
  throw new RelayError(
    "configuration_error",
    `what is secret about the frps of ${name} is not known here`,
    { cluster: name },
    `clio-relay cluster add ${name} --frp-server-addr ${frp.server_addr} --frp-token-file FILE, then clio-relay cluster bootstrap ${name}`,
  );
}

/** What the worker of a cluster is to offer at its frps; null where it has none. @throws RelayError configuration_error */
export function frpWanted(entry: ClusterEntry, paths: Pick<Paths, "configDir" | "frpDir">, env: Environment): FrpWanted | null {
  if (!isFrp(entry)) return null;
  const { server_addr, server_port, protocol, stun_server, frpc_bin } = entry.frp;
  return {
    server: { server_addr, server_port, protocol, stun_server },
    direct: entry.mode === "frp-xtcp",
    room: roomOf(entry, paths, env),
    frpc: frpc_bin,
    programs: paths.frpDir,
  };
}

/**
 * The worker's session over frp: over frps at once, and in mode `frp-xtcp` from peer to peer as soon as such a way is found. Needs nobody; the ledger has it as a dial of the client frp.
 *
 * @throws RelayError configuration_error, frp_not_installed, frp_unreachable; as openWorkerSession; the signal's reason
 */
export async function overFrp(way: FrpWay, signal: AbortSignal): Promise<FrpTransport> {
  const { entry, env, paths, keys, ledger, variables, caFiles } = way;
  const { name: cluster, frp, mode } = entry;
  const room = roomOf(entry, paths, env);
  const directory = path.join(paths.runDir, "frp");
  const server = frpServer(frp, room, { variables, caFiles, directory, cluster });
  const frpc = ownFrpc(env, paths);
  const line = ledger.beginUnattended({
    cluster,
    purpose: "connect",
    client: "frp",
    target: serverText(server),
    via: [],
    requested_by: way.requestedBy,
  });
  try {
    const arrival = await visit(
      {
        server,
        cluster,
        room,
        direct: mode === "frp-xtcp",
        directMs: frp.direct_timeout_seconds * 1_000,
        frpc,
        directory,
        name: way.name ?? `visitor-${cluster}`,
        variables,
        onTrouble: way.report,
        onFallback: way.onFallback,
        ...(way.wait === undefined ? {} : { wait: way.wait }),
      },
      (duplex, limit) => openWorkerSession(duplex, keys, { cluster, signal: limit }),
      signal,
    );
    line.settle("open");
    const { opened, direct } = arrival;
    const session = new TwoWays(
      opened.session,
      direct.then((found) => found?.session ?? null),
    );
    void session.closed.then((reason) => line.ended(reason?.code ?? null));
    const carrier = (): FrpEntry["mode"] => `frp-${session.way}`;
    void session.moved.then(() => way.onCarrier?.(carrier()));
    return {
      session,
      open: (wanted) => session.openSocket("/", wanted),
      rerouted: session.moved,
      carrier,
      looked: direct.then(() => undefined),
    };
  } catch (error) {
    settleFailure(line, signal, error);
    throw error;
  }
}
