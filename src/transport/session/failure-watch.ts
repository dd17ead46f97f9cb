import type { Client } from "ssh2";

type OnFailure = (protocol: unknown, methods: unknown, partialSuccess: unknown) => void;

/** The part of ssh2's client that is looked at; ssh2 is pinned. */
interface Inside {
  readonly _protocol?: { readonly _handlers?: { USERAUTH_FAILURE?: OnFailure } };
}

/**
 * See every SSH_MSG_USERAUTH_FAILURE (RFC 4252, section 5.1): after a key of an agent, ssh2 keeps to itself which methods can continue and
 * whether that key was one of several proofs. Call it once `connect` has been called.
 */
export function watchFailures(client: Client, seen: (methods: readonly string[], partialSuccess: boolean) => void): void {
  const handlers = (client as unknown as Inside)._protocol?._handlers;
  const theirs = handlers?.USERAUTH_FAILURE;
  if (handlers === undefined || theirs === undefined) throw new TypeError("ssh2 is another version than the one that this was written for");
  handlers.USERAUTH_FAILURE = (protocol, methods, partialSuccess) => {
    if (Array.isArray(methods)) seen(methods.map(String), partialSuccess === true);
    theirs(protocol, methods, partialSuccess);
  };
}
