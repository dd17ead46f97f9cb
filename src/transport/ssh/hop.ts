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
  request: Pick<SshRequest, "prompter" | "notice" | "agentSocket" | "config" | "keyRing">,
): Promise<OpenedHop> {
  const { notice, agentSocket, config, keyRing } = request;
  const prompter = target.batchMode ? NOBODY : request.prompter;
  const login = new Login({ target, agentSocket, uid: config.account.uid, prompter, keyRing });
  let banner = "";
  const hostKeyAlgorithms = wantedHostKeys(target, duplex);
  let state: AuthenticationState = { methods: null, partialSuccess: false };
  try {
    const session = await openClientSession(duplex, {
      user: target.user,
      algorithms: "site",
      left: target.algorithms,
      hostKeyAlgorithms,
      verifyHostKey: hostKeyVerifier({ target, prompter, notice, pins }),
      authenticate: (now) => {
        state = now;
        return login.authenticate(now);
      },
      onBanner: (text) => {
        banner += serverText(text);
        notice(serverText(text));
      },
      // As ssh(1) has it, the time is for what comes before the session, too.
      ...(target.connectTimeoutSeconds === null ? {} : { deadlineMs: target.connectTimeoutSeconds * 1_000 }),
      signal,
    });
    return { session, banner };
  } catch (error) {
    if (wasRefused(error)) throw login.failure(state, error);
    throw named(error, target, "the session could not be opened");
  }
}

function wantedHostKeys(target: Target, duplex: Duplex): string[] {
  try {
    return preferKnown(target.algorithms.serverHostKey, hostNames(target));
  } catch (error) {
    // It belongs to the session from its opening on, and there is none.
    duplex.destroy();
    throw error;
  }
}

/** Whether the session below says that the server ended it because of what it had refused; it does not know what was tried. */
const wasRefused = (error: unknown): boolean => isRelayError(error, "authentication_failed") && error.data["tried"] === undefined;

/** Failures of the session below do not know which hop they are about. */
function named(error: unknown, target: Target, what: string): unknown {
  if (!isRelayError(error) || !["link_bringup_failed", "algorithms_refused", "channel_refused", "link_down"].includes(error.code))
    return error;
  return new RelayError(error.code, `${address(target)}: ${what}: ${error.message}`, { ...error.data, host: target.host }, error.hint, {
    cause: error,
  });
}
