import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { fateAmong, type PairingFate, pairUser } from "../session/admission-words.ts";
import { openClientSession } from "../session/client-session.ts";
import { fingerprintOf } from "../session/keys.ts";
import type { Session } from "../session/session.ts";
import { signerOf } from "../session/signer.ts";
import { hostPrintOf, type PairingCode } from "./code.ts";
import { pairingKey } from "./pairing-key.ts";

export interface PairingOptions {
  readonly code: Pick<PairingCode, "secret" | "hostPrint">;
  /** This desktop's private key, in the format of OpenSSH. */
  readonly privateKey: string;
  /** What this desktop is called in the worker's list of keys; 64 bytes of it. */
  readonly comment: string;
  readonly signal?: AbortSignal;
}

export interface Paired {
  /** An ordinary session with the worker. */
  readonly session: Session;
  /** The worker's public key, in the format of RFC 4253, section 6.6. */
  readonly workerKey: Buffer;
}

/**
 * Have this desktop's key let in by a worker at the other end of a Duplex, which belongs to the session from here on. The worker's key is the one of the
 * code, or nothing is proven to anybody.
 *
 * @throws RelayError configuration_error for a key of this desktop that is none; host_key_changed where somebody else answers; pairing_refused with `reason`; as openClientSession
 */
export async function pairOver(duplex: Duplex, { code, privateKey, comment, signal }: PairingOptions): Promise<Paired> {
  const own = signerOf(privateKey);
  let workerKey: Buffer | null = null;
  const steps = [pairingKey(code), own];
  try {
    const session = await openClientSession(duplex, {
      user: pairUser(fingerprintOf(own.key), comment),
      algorithms: "own",
      verifyHostKey: (key, answer) => {
        if (hostPrintOf(key).equals(code.hostPrint)) {
          workerKey = key;
          return true;
        }
        const what = `whoever answers has the key ${fingerprintOf(key)}, which is not that of the worker that made the code`;
        answer(false, new RelayError("host_key_changed", what, { fingerprint: fingerprintOf(key) }));
        return undefined;
      },
      authenticate: ({ methods, partialSuccess }) => {
        if (methods === null) return { method: "none" };
        // The second key is of use only after the first.
        const next = steps.length === 1 && !partialSuccess ? undefined : steps.shift();
        if (next === undefined) return null;
        return { method: "publickey", signer: { publicKey: next.key, sign: async (data) => next.sign(data) } };
      },
      ...(signal === undefined ? {} : { signal }),
    });
    return { session, workerKey: workerKey as Buffer | null as Buffer };
  } catch (error) {
    if (!isRelayError(error, "authentication_failed")) throw error;
    const { methods } = error.data;
    throw pairingRefused((Array.isArray(methods) ? fateAmong(methods) : null) ?? "unknown", error);
  }
}

const WHY: Readonly<Record<Exclude<PairingFate, "open"> | "unknown", string>> = {
  used: "the code was used already",
  expired: "the code is no longer valid",
  tries: "somebody has tried other codes too often, and this one is no longer valid",
  unknown: "the worker does not know the code: it is another one, or a new one was made, or the worker was started again",
};

/** The refusal of a code. */
export const pairingRefused = (reason: keyof typeof WHY, cause?: unknown): RelayError =>
  new RelayError("pairing_refused", WHY[reason], { reason }, undefined, { cause });
