import path from "node:path";
import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { type Attending, type Destination, dial, settleFailure } from "../dial.ts";
import type { LedgerLine } from "../ledger.ts";
import { ProcessStream, withoutCredentials } from "../process-stream.ts";
import type { Session } from "../session/session.ts";
import { checkHostName, resolveRoute } from "./config/resolve.ts";
import type { Target } from "./config/target.ts";
import { address, forward, type OpenedHop, openHop } from "./hop.ts";
import { serverText } from "./prompt.ts";
import { contextOf, type SshRequest } from "./request.ts";

/** One hop of a connection, as it was reached. */
export interface Hop {
  readonly host: string;
  readonly hostName: string;
  readonly port: number;
  readonly user: string;
}

export interface SshConnection {
  /** With the last hop. Closing it closes the others. */
  readonly session: Session;
  /** From here to there; the last is the cluster's. */
  readonly hops: readonly Hop[];
  /** What the last hop said before it knew who is there; empty when nothing. Safe for a terminal. */
  readonly banner: string;
  /** Its entry in the ledger. */
  readonly ledgerSeq: number;
  /** What the configuration says of the last hop. */
  readonly target: Target;
}

const DIAL_MS = 30_000;

/**
 * From a cluster's entry to an authenticated session with its login node, over one connection: resolve the hops, dial the first, check each hop's key,
 * prove who the user is, and go on to the next in a forward.
 *
 * @throws RelayError ssh_config_unsupported, configuration_error; authorization_required (nobody is there), prompt_cancelled; host_unreachable;
 *   host_key_changed, host_key_refused; authentication_failed, passphrase_wrong; algorithms_refused; channel_refused (a hop forwards nothing);
 *   link_bringup_failed; local_file_unusable; the signal's reason when the request ends
 */
export async function connectSsh(request: SshRequest): Promise<SshConnection> {
  const { entry, attending, ledger, config } = request;
  const route = await resolveRoute(entry, contextOf(request));
  const { duplex, line } = await dial({
    destination: destination(route[0]!, config),
    attending,
    ledger,
    dialing: {
      cluster: entry.cluster,
      purpose: request.purpose,
      target: address(route.at(-1)!),
      via: route.slice(0, -1).map(address),
      client: "builtin",
    },
  }).catch((error: unknown) => {
    throw withConfiguration(error, request);
  });
  const { signal } = attending!;
  try {
    const { session, banner } = await openHops(route, duplex, signal, request);
    line.settle("open");
    endWith(session, line);
    return { session, banner, ledgerSeq: line.seq, hops: route.map(hopOf), target: route.at(-1)! };
  } catch (caught) {
    const error = await whyCommandEnded(duplex, route[0]!, caught);
    settleFailure(line, signal, error);
    throw error;
  }
}

/** A name that nobody knows may be one of a configuration that was not read. */
function withConfiguration(error: unknown, request: SshRequest): unknown {
  if (!isRelayError(error, "host_unreachable") || error.data["layer"] !== "dns") return error;
  const { configFile, account } = contextOf(request);
  const read =
    configFile === "none"
      ? "no ssh configuration was read"
      : `ssh configuration: ${configFile ?? path.join(account.home, ".ssh", "config")}`;
  return new RelayError(error.code, error.message, error.data, `${read}; CLIO_RELAY_SSH_CONFIG names another file`, { cause: error });
}

/** How long a command whose output has ended may take to end, in milliseconds. */
const END_MS = 1_000;

/** A session that did not come about because its ProxyCommand ended is a host that was not reached; the command says why. */
async function whyCommandEnded(duplex: Duplex, { hostName, port }: Target, error: unknown): Promise<unknown> {
  if (!(duplex instanceof ProcessStream) || !isRelayError(error, "link_bringup_failed")) return error;
  const end = await Promise.race([duplex.ended, Bun.sleep(END_MS)]);
  if (!end || end.code === null) return error;
  const said = serverText(end.stderr.trim().slice(-1_000));
  return new RelayError(
    "host_unreachable",
    `the ProxyCommand to ${hostName}, port ${port}, ended with code ${end.code}${said === "" ? "" : `: ${said}`}`,
    { host: hostName, port, exit_code: end.code },
    undefined,
    { cause: error },
  );
}

const hopOf = ({ host, hostName, port, user }: Target): Hop => ({ host, hostName, port, user });

function endWith(session: Session, line: LedgerLine): void {
  session.closed.then((error) => line.ended(error?.code ?? null)).catch(() => undefined);
}

function destination(first: Target, { variables, directory }: SshRequest["config"]): Destination {
  if (first.proxyCommand === null) {
    return {
      kind: "tcp",
      host: first.hostName,
      port: first.port,
      family: first.addressFamily,
      bindAddress: first.bindAddress,
      timeoutMs: first.connectTimeoutSeconds === null ? DIAL_MS : first.connectTimeoutSeconds * 1_000,
    };
  }
  const shell = variables["SHELL"]?.startsWith("/") ? variables["SHELL"] : "/bin/sh";
  return {
    kind: "process",
    what: "ProxyCommand",
    argv: [shell, "-c", `exec ${first.proxyCommand}`],
    env: withoutCredentials(variables),
    directory,
  };
}

/** The hops on the way end with the last one. */
function closeAfter(session: Session, outer: readonly OpenedHop[]): void {
  const close = (): void => {
    for (const one of outer) one.session.close();
  };
  session.closed.then(close).catch(() => undefined);
}

async function openHops(route: readonly Target[], first: Duplex, signal: AbortSignal, request: SshRequest): Promise<OpenedHop> {
  const outer: OpenedHop[] = [];
  try {
    let duplex = first;
    for (const [index, target] of route.entries()) {
      const next = route[index + 1];
      const hop = await openHop(target, duplex, { signal, pins: next === undefined ? request.entry.hostKeyPins : [] }, request);
      if (next === undefined) {
        closeAfter(hop.session, outer.reverse());
        return hop;
      }
      outer.push(hop);
      duplex = await forward(hop, target, next, signal);
    }
    throw new RangeError("a route has at least one hop");
  } catch (error) {
    for (const { session } of outer.reverse()) session.close();
    throw error;
  }
}

/**
 * Go on to another login node of the cluster, over the connection that is there: no further connection of this machine. The same user, keys and
 * prompts; what the configuration says of the cluster's host applies. The new session closes the one that it rides on.
 *
 * @param node its name or address as the host at the other side knows it, and its port there
 * @throws as connectSsh; the connection that it was to ride on is still there then
 */
export async function hopSsh(
  from: SshConnection,
  node: { readonly host: string; readonly port?: number },
  request: SshRequest,
): Promise<SshConnection> {
  const { signal } = attendingOf(request);
  const { host, port = 22 } = node;
  checkHostName(host);
  const name = from.target.hostKeyAlias ?? (port === 22 ? host : `[${host}]:${port}`);
  const target: Target = { ...from.target, host, hostName: host, port, hostKeyName: name, proxyJump: [], proxyCommand: null };
  const duplex = await forward(from, from.target, target, signal);
  const { session, banner } = await openHop(target, duplex, { signal, pins: request.entry.hostKeyPins }, request);
  closeAfter(session, [from]);
  return { session, banner, ledgerSeq: from.ledgerSeq, hops: [...from.hops, hopOf(target)], target };
}

function attendingOf({ attending, entry }: SshRequest): Attending {
  if (attending !== null && !attending.signal.aborted) return attending;
  throw new RelayError("authorization_required", `going on to another login node may ask for something, and nobody is there`, {
    cluster: entry.cluster,
  });
}
