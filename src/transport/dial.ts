import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../domain/errors.ts";
import { ADDRESS_MS, dialTcp, type TcpRequest } from "./dial-tcp.ts";
import type { Dialing, Ledger, LedgerLine } from "./ledger.ts";
import { type WayOutRequest, wayOut } from "./outbound/way-out.ts";
import { type ProcessRequest, ProcessStream } from "./process-stream.ts";

/** Where a connection goes: a port, or a process whose standard input and output it is. */
export type Destination =
  | ({ readonly kind: "tcp" } & Omit<TcpRequest, "signal">)
  /** `what` names it for people: ProxyCommand, ssh. */
  | ({ readonly kind: "process"; readonly what: string } & ProcessRequest);

/** The request of a person that a connection belongs to, for as long as it is open. */
export interface Attending {
  /** The command, as it is to stand in the ledger. */
  readonly requestedBy: string;
  /** Aborted when the person has gone away: the dial is given up. */
  readonly signal: AbortSignal;
}

export interface DialRequest {
  readonly destination: Destination;
  /** Null: nobody is there. Then nothing is dialed. */
  readonly attending: Attending | null;
  readonly ledger: Ledger;
  readonly dialing: Omit<Dialing, "requested_by">;
}

/** A connection, and its line in the ledger, which whoever uses it settles. */
export interface Dialed {
  readonly duplex: Duplex;
  readonly line: LedgerLine;
}

/**
 * Open a connection: the one place where this is done. It is written into the ledger before anything is dialed. The line stays open for the
 * caller, who knows when the session on it is up.
 *
 * @throws RelayError authorization_required without an attending request; host_unreachable; local_file_unusable when it cannot be counted; the
 *   signal's reason when the request ends
 */
export async function dial({ destination, attending, ledger, dialing }: DialRequest): Promise<Dialed> {
  if (attending === null || attending.signal.aborted) {
    throw new RelayError(
      "authorization_required",
      `${dialing.target} is dialed only when somebody asks for it`,
      { cluster: dialing.cluster },
      `clio-relay connect ${dialing.cluster}`,
    );
  }
  const line = ledger.begin({ ...dialing, requested_by: attending.requestedBy });
  try {
    const duplex =
      destination.kind === "tcp" ? await dialTcp({ ...destination, signal: attending.signal }) : new ProcessStream(destination);
    // Whoever takes it over listens too; an error that comes before is seen at the first use.
    duplex.on("error", () => undefined);
    return { duplex, line };
  } catch (error) {
    settleFailure(line, attending.signal, error);
    throw error;
  }
}

export interface DialOutRequest {
  readonly wayOut: WayOutRequest;
  readonly ledger: Ledger;
  readonly dialing: Omit<Dialing, "requested_by" | "target" | "via" | "client">;
  /** On whose behalf, as it is to stand in the ledger. */
  readonly requestedBy: string;
  readonly signal: AbortSignal;
  /** For names; the system's when left out. */
  readonly lookUp?: NonNullable<TcpRequest["lookUp"]>;
}

/**
 * Open a connection to a relay-host, with or without anybody being there: no server on that way asks a person for anything, and none of them is a
 * site's sshd. It is written into the ledger before it is dialed, and settled by the caller.
 *
 * @throws RelayError host_unreachable; as WayOut.climb; configuration_error; local_file_unusable when it cannot be counted; the signal's reason. Each
 *   that is a failure of the way has its `layer` in its data
 */
export async function dialOut({ wayOut: request, ledger, dialing, requestedBy, signal, lookUp }: DialOutRequest): Promise<Dialed> {
  signal.throwIfAborted();
  const way = wayOut(request);
  const via = way.proxy === null ? [] : [way.proxy.text];
  const line = ledger.beginUnattended({ ...dialing, client: "relay", target: way.url.text, via, requested_by: requestedBy });
  try {
    const { host, port } = way.first;
    const tcp = { host, port, family: "any", bindAddress: null, timeoutMs: way.tcpMs, addressMs: ADDRESS_MS, signal } as const;
    const socket = await dialTcp({ ...tcp, ...(lookUp === undefined ? {} : { lookUp }) }).catch((error: unknown) => {
      throw way.proxy === null ? error : unreachableProxy(error);
    });
    const duplex = await way.climb(socket, signal);
    duplex.on("error", () => undefined);
    return { duplex, line };
  } catch (error) {
    settleFailure(line, signal, error);
    throw error;
  }
}

/** What is not reached is the proxy, and not where it would have led. */
function unreachableProxy(error: unknown): unknown {
  if (!isRelayError(error, "host_unreachable")) return error;
  return new RelayError("proxy_failed", `the proxy ${error.message}`, { ...error.data, layer: "proxy" }, undefined, { cause: error });
}

/**
 * Start a process that can ask nobody for a code: a client whose own way is a channel of a connection that was dialed, which is no connection of this machine; or
 * frpc, whose connection is counted by who starts it.
 */
export const startInside = (request: ProcessRequest): ProcessStream => new ProcessStream(request);

/** Connect to a port of this machine on which a process that this one has started listens. @throws RelayError host_unreachable */
export const joinOwnPort = (port: number, timeoutMs: number, signal: AbortSignal): Promise<Duplex> =>
  dialTcp({ host: "127.0.0.1", port, family: "inet", bindAddress: null, timeoutMs, signal });

/** Codes of failures in which one side did not take the other. */
const REFUSALS = [
  "host_key_changed",
  "host_key_refused",
  "authentication_failed",
  "passphrase_wrong",
  "ssh_config_unsupported",
  "algorithms_refused",
] as const;
const CANCELLED = ["prompt_cancelled", "authorization_required"] as const;

/** Write down how a dial failed, from what it failed with. */
export function settleFailure(line: LedgerLine, signal: AbortSignal, error: unknown): void {
  const is = (codes: readonly string[]): boolean => isRelayError(error) && codes.includes(error.code);
  const outcome = signal.aborted || is(CANCELLED) ? "cancelled" : is(REFUSALS) ? "refused" : "failed";
  line.settle(outcome, isRelayError(error) ? error.code : outcome === "cancelled" ? "the request ended" : "internal_error");
}
