import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { SESSION_USER } from "./admission.ts";
import { keyExpired } from "./admission-words.ts";
import type { ClientSession } from "./client-channels.ts";
import { openClientSession } from "./client-session.ts";
import { fingerprintOf } from "./keys.ts";

/** Who the two sides of a session with a worker of ours are. */
export interface WorkerSessionKeys {
  /** Public keys that the worker may have, in the format of RFC 4253, section 6.6: the pinned one, and the one that it has announced. */
  readonly workerKeys: readonly Buffer[];
  /** This desktop's private key, in the format of OpenSSH. */
  readonly privateKey: string;
}

export interface WorkerSession {
  readonly session: ClientSession;
  /** The one of `workerKeys` that the worker has proven. */
  readonly workerKey: Buffer;
}

/**
 * Open the worker's own session on a Duplex, which belongs to it from here on: the worker has one of the pinned keys, and this desktop's key is let in.
 *
 * @param cluster for the commands that errors name
 * @throws RelayError host_key_changed with `fingerprint` and `expected`; key_expired; authentication_failed where the key is not one that the worker lets in;
 *   as openClientSession
 */
export async function openWorkerSession(
  duplex: Duplex,
  { workerKeys, privateKey }: WorkerSessionKeys,
  { cluster, signal }: { readonly cluster: string; readonly signal?: AbortSignal },
): Promise<WorkerSession> {
  let workerKey: Buffer | null = null;
  let tried = false;
  try {
    const session = await openClientSession(duplex, {
      user: SESSION_USER,
      algorithms: "own",
      verifyHostKey: (key, answer) => {
        workerKey = workerKeys.find((known) => known.equals(key)) ?? null;
        if (workerKey !== null) return true;
        answer(false, anotherKey(cluster, key, workerKeys));
        return undefined;
      },
      authenticate: ({ methods }) => {
        if (methods === null) return { method: "none" };
        if (tried) return null;
        tried = true;
        return { method: "publickey", key: privateKey };
      },
      ...(signal === undefined ? {} : { signal }),
    });
    // A session is open only after the verifier has said yes.
    return { session, workerKey: workerKey as Buffer | null as Buffer };
  } catch (error) {
    throw refusedAs(cluster, error);
  }
}

const renewal = (cluster: string): string =>
  `clio-relay cluster bootstrap --cluster ${cluster}, or clio-relay worker pair there and clio-relay cluster add --name ${cluster} --pair here`;

function anotherKey(cluster: string, key: Buffer, expected: readonly Buffer[]): RelayError {
  const known = expected.map(fingerprintOf);
  return new RelayError(
    "host_key_changed",
    `the worker's key is ${fingerprintOf(key)}, and ${known.join(" or ")} is known`,
    { fingerprint: fingerprintOf(key), expected: known },
    `if clio-relay worker keys list, on the cluster, shows that key: ${renewal(cluster)}`,
  );
}

/** What a worker says of a key that it does not let in. */
function refusedAs(cluster: string, error: unknown): unknown {
  if (!isRelayError(error, "authentication_failed")) return error;
  const methods = error.data["methods"];
  const expired = Array.isArray(methods) && methods.includes(keyExpired);
  return expired
    ? new RelayError("key_expired", `the worker of ${cluster} no longer lets this desktop's key in: it has expired`, {}, renewal(cluster), {
        cause: error,
      })
    : new RelayError(
        "authentication_failed",
        `the worker of ${cluster} does not let this desktop's key in`,
        { ...error.data },
        renewal(cluster),
        {
          cause: error,
        },
      );
}
