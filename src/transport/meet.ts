import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../domain/errors.ts";
import type { RelayUrl } from "../domain/relay-url.ts";
import { dialOut, settleFailure } from "./dial.ts";
import type { Ledger, LedgerLine } from "./ledger.ts";
import type { LinkTransport } from "./link-transport.ts";
import { accept, join } from "./meeting/join.ts";
import { roomOf } from "./meeting/proof.ts";
import { type Joining, type Registration, register } from "./meeting/register.ts";
import type { Surroundings } from "./outbound/way-out.ts";
import { type Paired, type PairingOptions, pairOver } from "./pairing/pair.ts";
import { pairingKey } from "./pairing/pairing-key.ts";
import { signerOf } from "./session/signer.ts";
import { openWorkerSession, type WorkerSessionKeys } from "./session/worker-session.ts";

/** A relay-host as one side has it. */
export interface MeetingPlace {
  readonly url: RelayUrl;
  readonly token: string;
  readonly surroundings: Surroundings;
  /** This program's version. */
  readonly version: string;
}

/** Whose dials they are. */
export interface Dials {
  readonly ledger: Ledger;
  readonly cluster: string;
  readonly requestedBy: string;
  readonly signal: AbortSignal;
}

interface Met<T> {
  readonly got: T;
  readonly line: LedgerLine;
}

/** Dial out and do there what one comes for. Failures of the meeting itself get their layer. */
async function at<T>(place: MeetingPlace, dials: Dials, work: (duplex: Duplex) => Promise<T>): Promise<Met<T>> {
  const { ledger, cluster, requestedBy, signal } = dials;
  const { url, token, surroundings, version } = place;
  const { duplex, line } = await dialOut({
    wayOut: { url, token, version, surroundings },
    ledger,
    dialing: { cluster, purpose: "connect" },
    requestedBy,
    signal,
  });
  try {
    const got = await work(duplex);
    line.settle("open");
    return { got, line };
  } catch (error) {
    duplex.destroy();
    settleFailure(line, signal, error);
    throw error;
  }
}

async function handshake<T>({ url }: MeetingPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isRelayError(error) || error.data["layer"] !== undefined) throw error;
    const data = { ...error.data, layer: "relay_handshake", relay_host: url.text };
    throw new RelayError(error.code, `${error.message} (${url.text})`, data, error.hint, { cause: error });
  }
}

export interface MeetWorkerOptions {
  readonly keys: WorkerSessionKeys;
  /** Milliseconds that a worker may take that is not there. */
  readonly waitMs: number;
  readonly onWaiting?: (what: "worker" | "admission") => void;
}

/**
 * A desktop: meet a worker at a relay-host, and open its session.
 *
 * @throws RelayError as dialOut, `join` and openWorkerSession do; the signal's reason
 */
export async function meetWorker(
  place: MeetingPlace,
  dials: Dials,
  { keys, waitMs, onWaiting }: MeetWorkerOptions,
): Promise<LinkTransport> {
  const { url, token } = place;
  const { signal, cluster } = dials;
  const signer = signerOf(keys.privateKey);
  const { got, line } = await at(place, dials, async (duplex) => {
    // While a worker has two keys it is registered by the one that answers now.
    const room = roomOf(keys.workerKeys[0]!);
    const joined = await handshake(place, () =>
      join(duplex, { relay: url, token, signer, room, waitMs, signal, ...(onWaiting === undefined ? {} : { onWaiting }) }),
    );
    return openWorkerSession(joined, keys, { cluster, signal });
  });
  const { session } = got;
  void session.closed.then((reason) => line.ended(reason?.code ?? null));
  return { session, open: (wanted) => session.openSocket("/", wanted) };
}

export interface PairWorkerOptions extends Omit<PairingOptions, "signal"> {
  /** Milliseconds that a worker may take that is not there. */
  readonly waitMs: number;
}

/**
 * A desktop that is not let in yet: meet the worker that made a code, and have this desktop's key let in by it.
 *
 * @throws RelayError as dialOut, `join` and pairOver do; the signal's reason
 */
export async function pairWorker(place: MeetingPlace, dials: Dials, { waitMs, ...options }: PairWorkerOptions): Promise<Paired> {
  const { url, token } = place;
  const { signal } = dials;
  const { code } = options;
  const { got, line } = await at(place, dials, async (duplex) => {
    const joined = await handshake(place, () =>
      join(duplex, { relay: url, token, signer: pairingKey(code), room: code.hostPrint, waitMs, pairing: true, signal }),
    );
    return pairOver(joined, { ...options, signal });
  });
  void got.session.closed.then((reason) => line.ended(reason?.code ?? null));
  return got;
}

/**
 * A worker: register at a relay-host.
 *
 * @param privateKey the worker's host key, in the format of OpenSSH
 * @throws RelayError as dialOut and `register` do; the signal's reason
 */
export async function registerWorker(
  place: MeetingPlace,
  dials: Dials,
  privateKey: string,
  onJoining: (joining: Joining) => void,
): Promise<Registration> {
  const { url, token } = place;
  const { got, line } = await at(place, dials, (duplex) =>
    handshake(place, () => register(duplex, { relay: url, token, signer: signerOf(privateKey), onJoining, signal: dials.signal })),
  );
  void got.closed.then((reason) => line.ended(isRelayError(reason) ? reason.code : null));
  return got;
}

/**
 * A worker: come for a desktop that it lets in.
 *
 * @returns what carries the session that is to be answered
 * @throws RelayError as dialOut and `accept` do; the signal's reason
 */
export async function acceptDesktop(place: MeetingPlace, dials: Dials, privateKey: string, ticket: Buffer): Promise<Duplex> {
  const { url, token } = place;
  const { got, line } = await at(place, dials, (duplex) =>
    handshake(place, () => accept(duplex, { relay: url, token, signer: signerOf(privateKey), ticket, signal: dials.signal })),
  );
  got.on("close", () => line.ended(null));
  return got;
}
