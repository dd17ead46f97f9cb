import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { type Attending, type Destination, dial, settleFailure } from "../dial.ts";
import type { Ledger, LedgerLine } from "../ledger.ts";
import { ProcessStream, withoutCredentials } from "../process-stream.ts";
import type { AuthenticationState } from "../session/authentication.ts";
import { openClientSession } from "../session/client-session.ts";
import type { Session } from "../session/session.ts";
import { Login } from "./authenticate.ts";
import { type ConfigContext, resolveRoute } from "./config/resolve.ts";
import type { Named, Target } from "./config/target.ts";
import { hostKeyVerifier, hostNames } from "./host-key.ts";
import { preferKnown } from "./known-hosts/judge.ts";
import { NOBODY, type Prompter, serverText } from "./prompt.ts";

/** What a cluster's entry says of the way to it. */
export interface SshEntry extends Named {
  readonly cluster: string;
  /** `SHA256:…` of the host keys of the last hop that are right, whatever known_hosts says; empty: known_hosts decides. */
  readonly hostKeyPins: readonly string[];
}

export interface SshRequest {
  readonly entry: SshEntry;
  readonly purpose: "connect" | "bootstrap";
  /** The person's request that this belongs to; null: nobody is there, and nothing is dialed. */
  readonly attending: Attending | null;
  readonly prompter: Prompter;
  readonly ledger: Ledger;
  /** Where the ssh configuration comes from, with variables and directory of the request. */
  readonly config: Omit<ConfigContext, "signal">;
  /** SSH_AUTH_SOCK of the request; null where it has none. */
  readonly agentSocket: string | null;
  /** Told what the person should see and what stops nothing: banners of servers, keys that could not be remembered. Safe for a terminal. */
  readonly notice: (text: string) => void;
}

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
}

const DIAL_MS = 30_000;
/** RFC 4253, section 11.1. OpenSSH ends with the first after too many failures, others with the second. */
const PROTOCOL_ERROR = 2;
const NO_MORE_METHODS = 14;

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
  const route = await resolveRoute(entry, { ...config, ...(attending === null ? {} : { signal: attending.signal }) });
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
  });
  const { signal } = attending!;
  try {
    const { session, banner } = await openHops(route, duplex, signal, request);
    line.settle("open");
    endWith(session, line);
    return { session, banner, ledgerSeq: line.seq, hops: route.map(({ host, hostName, port, user }) => ({ host, hostName, port, user })) };
  } catch (caught) {
    const error = await whyCommandEnded(duplex, route[0]!, caught);
    duplex.destroy();
    settleFailure(line, signal, error);
    throw error;
  }
}

/** How long a command whose output has ended may take to end, in milliseconds. */
const END_MS = 1_000;

/** A session that did not come about because its ProxyCommand ended is a host that was not reached; the command says why. */
async function whyCommandEnded(duplex: Duplex, { hostName, port, proxyCommand }: Target, error: unknown): Promise<unknown> {
  if (!(duplex instanceof ProcessStream) || !isRelayError(error, "link_bringup_failed")) return error;
  const end = await Promise.race([duplex.ended, Bun.sleep(END_MS)]);
  if (!end || end.code === null) return error;
  const said = serverText(end.stderr.trim().slice(-1_000));
  return new RelayError(
    "host_unreachable",
    `the ProxyCommand to ${hostName}, port ${port}, ended with code ${end.code}${said === "" ? "" : `: ${said}`}`,
    { host: hostName, port, command: proxyCommand, exit_code: end.code },
    undefined,
    { cause: error },
  );
}

const address = ({ user, hostName, port }: Target): string => `${user}@${hostName}:${port}`;

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
function closeAfter(session: Session, outer: readonly Session[]): void {
  const close = (): void => {
    for (const one of outer) one.close();
  };
  session.closed.then(close).catch(() => undefined);
}

async function openHops(
  route: readonly Target[],
  first: Duplex,
  signal: AbortSignal,
  request: SshRequest,
): Promise<{ session: Session; banner: string }> {
  const opened: Session[] = [];
  try {
    let duplex = first;
    for (const [index, target] of route.entries()) {
      const { session, banner } = await openHop(target, duplex, signal, request, index === route.length - 1);
      opened.push(session);
      const next = route[index + 1];
      if (next === undefined) {
        closeAfter(session, opened.slice(0, -1).reverse());
        return { session, banner };
      }
      duplex = await session.openTcp(next.hostName, next.port, signal).catch((error: unknown) => {
        throw named(error, target, `it does not forward to ${next.hostName}, port ${next.port}`);
      });
    }
    throw new RangeError("a route has at least one hop");
  } catch (error) {
    for (const session of opened.reverse()) session.close();
    throw error;
  }
}

async function openHop(
  target: Target,
  duplex: Duplex,
  signal: AbortSignal,
  request: SshRequest,
  last: boolean,
): Promise<{ session: Session; banner: string }> {
  const { entry, notice, agentSocket, config } = request;
  const prompter = target.batchMode ? NOBODY : request.prompter;
  const login = new Login({ target, agentSocket, uid: config.account.uid, prompter });
  let banner = "";
  let state: AuthenticationState = { methods: null, partialSuccess: false };
  try {
    const session = await openClientSession(duplex, {
      user: target.user,
      algorithms: "site",
      left: target.algorithms,
      hostKeyAlgorithms: preferKnown(target.algorithms.serverHostKey, hostNames(target)),
      verifyHostKey: hostKeyVerifier({ target, prompter, notice, pins: last ? entry.hostKeyPins : [] }),
      authenticate: (now) => {
        state = now;
        return login.authenticate(now);
      },
      onBanner: (text) => {
        banner += serverText(text);
        notice(serverText(text));
      },
      signal,
    });
    return { session, banner };
  } catch (error) {
    if (login.begun && wasRefused(error)) throw login.failure(state, error);
    throw named(error, target, "the session could not be opened");
  }
}

/** Whether the server ended the session because it had seen enough failures. */
function wasRefused(error: unknown): boolean {
  const cause: unknown = isRelayError(error, "link_bringup_failed") ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && (cause.code === PROTOCOL_ERROR || cause.code === NO_MORE_METHODS);
}

/** Failures of the session below do not know which hop they are about. */
function named(error: unknown, target: Target, what: string): unknown {
  if (!isRelayError(error) || !["link_bringup_failed", "algorithms_refused", "channel_refused", "link_down"].includes(error.code))
    return error;
  return new RelayError(error.code, `${address(target)}: ${what}: ${error.message}`, { ...error.data, host: target.host }, error.hint, {
    cause: error,
  });
}
