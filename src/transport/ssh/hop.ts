import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { AuthenticationState } from "../session/authentication.ts";
import { openClientSession } from "../session/client-session.ts";
import type { Session } from "../session/session.ts";
import { Login } from "./authenticate.ts";
import type { Target } from "./config/target.ts";
import { hostKeyVerifier, hostNames } from "./host-key.ts";
import { preferKnown } from "./known-hosts/judge.ts";
import { NOBODY, serverText } from "./prompt.ts";
import type { SshRequest } from "./request.ts";

/** RFC 4253, section 11.1. OpenSSH ends with the first after too many failures, others with the second. */
const PROTOCOL_ERROR = 2;
const NO_MORE_METHODS = 14;

/** `user@host:port`. */
export const address = ({ user, hostName, port }: Target): string => `${user}@${hostName}:${port}`;

/**
 * A stream to where the next hop listens, forwarded by this one.
 *
 * @throws RelayError channel_refused with the name of this hop
 */
export async function forward(from: OpenedHop, at: Target, next: Target, signal: AbortSignal): Promise<Duplex> {
  try {
    return await from.session.openTcp(next.hostName, next.port, signal);
  } catch (error) {
    throw named(error, at, `it does not forward to ${next.hostName}, port ${next.port}`);
  }
}

/** An authenticated session with one hop, and what it said before it knew who is there: safe for a terminal, empty when nothing. */
export interface OpenedHop {
  readonly session: Session;
  readonly banner: string;
}

/**
 * Open the session with one hop on a Duplex that leads to it: check its key, prove who the user is.
 *
 * @param pins of its host key; empty: known_hosts decides
 * @throws as connectSsh, named after the hop
 */
export async function openHop(
  target: Target,
  duplex: Duplex,
  { signal, pins }: { signal: AbortSignal; pins: readonly string[] },
  request: Pick<SshRequest, "prompter" | "notice" | "agentSocket" | "config">,
): Promise<OpenedHop> {
  const { notice, agentSocket, config } = request;
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
      verifyHostKey: hostKeyVerifier({ target, prompter, notice, pins }),
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
