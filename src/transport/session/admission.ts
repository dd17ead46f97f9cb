import { timingSafeEqual } from "node:crypto";
import type { AuthContext } from "ssh2";
import { keyExpired, PAIR_USER, type PairingFate, pairingOver, pairUserOf } from "./admission-words.ts";
import { fingerprintOf, verifiesEd25519 } from "./keys.ts";

/** The one user that a server of ours knows, besides those who are being paired. */
export const SESSION_USER = "clio-relay";

/** What a pairing code has opened (docs/wire.md, Pairing). Keys are in the format of RFC 4253, section 6.6. */
export interface PairingDoor {
  /** What a pairing key is of; null where it was never known here. */
  fate(pairingKey: Buffer): PairingFate | null;
  /** Somebody has proven a key that is none. */
  failed(): void;
  /**
   * Let a desktop's key in for good. The code is used up with the call, whatever becomes of it.
   *
   * @param comment what the desktop calls itself: text from outside
   * @returns false where somebody else was faster
   */
  admit(pairingKey: Buffer, client: Buffer, comment: string): Promise<boolean>;
}

/** Who may come in. Asked at every attempt. Keys are in the format of RFC 4253, section 6.6. */
export interface KeyDoor {
  readonly allowedKeys: () => readonly Buffer[];
  /** Keys that could come in once; they are told so when they are proven. */
  readonly expiredKeys?: () => readonly Buffer[];
  /** Absent: nobody is paired here. */
  readonly pairing?: PairingDoor;
}

/**
 * What to answer to an attempt. `sign`: this key would do, and now a signature is wanted. `partial`: proven, and another key is needed besides. `no` may
 * come with a word for those who have proven something (a method of RFC 4252, section 5.1, with the name of a domain).
 */
export type Verdict =
  | { readonly verdict: "sign" | "partial" }
  | { readonly verdict: "no"; readonly word?: string }
  | { readonly verdict: "in"; readonly key: Buffer };

const NO: Verdict = { verdict: "no" };

/** Judges the attempts of one session: the key first, the signature second (RFC 4252, section 7). */
export class Admission {
  /** The user whose pairing key is proven, and that key. */
  #proven: { readonly user: string; readonly pairingKey: Buffer } | null = null;

  constructor(private readonly door: KeyDoor) {}

  judge(context: AuthContext): Verdict | Promise<Verdict> {
    if (context.method !== "publickey" || context.key.algo !== "ssh-ed25519") return NO;
    const { data } = context.key;
    const proof: Proof = { key: data, signed: context.signature !== undefined, proves: () => proves(data, context) };
    if (context.username === SESSION_USER) return this.#ordinary(proof);
    if (this.door.pairing === undefined || !context.username.startsWith(PAIR_USER)) return NO;
    return this.#paired(context.username, proof, this.door.pairing);
  }

  #ordinary(proof: Proof): Verdict {
    if (isAmong(proof.key, this.door.allowedKeys())) {
      if (!proof.signed) return { verdict: "sign" };
      return proof.proves() ? { verdict: "in", key: Buffer.from(proof.key) } : NO;
    }
    if (!isAmong(proof.key, this.door.expiredKeys?.() ?? [])) return NO;
    if (!proof.signed) return { verdict: "sign" };
    return proof.proves() ? { verdict: "no", word: keyExpired } : NO;
  }

  #paired(user: string, proof: Proof, door: PairingDoor): Verdict | Promise<Verdict> {
    const named = pairUserOf(user);
    if (named === null) return NO;
    if (this.#proven?.user === user) return this.#secondKey(this.#proven.pairingKey, named, proof, door);
    const fate = door.fate(proof.key);
    if (fate !== null && !proof.signed) return { verdict: "sign" };
    if (fate === null || !proof.proves()) {
      door.failed();
      return NO;
    }
    if (fate !== "open") return { verdict: "no", word: pairingOver(fate) };
    this.#proven = { user, pairingKey: Buffer.from(proof.key) };
    return { verdict: "partial" };
  }

  #secondKey(
    pairingKey: Buffer,
    named: { readonly fingerprint: string; readonly comment: string },
    proof: Proof,
    door: PairingDoor,
  ): Verdict | Promise<Verdict> {
    if (fingerprintOf(proof.key) !== named.fingerprint) return NO;
    if (!proof.signed) return { verdict: "sign" };
    if (!proof.proves()) return NO;
    const fate = door.fate(pairingKey);
    if (fate !== "open") return fate === null ? NO : { verdict: "no", word: pairingOver(fate) };
    const key = Buffer.from(proof.key);
    return door
      .admit(pairingKey, key, named.comment)
      .then((taken): Verdict => (taken ? { verdict: "in", key } : { verdict: "no", word: pairingOver("used") }));
  }
}

interface Proof {
  readonly key: Buffer;
  readonly signed: boolean;
  proves(): boolean;
}

function proves(key: Buffer, context: AuthContext): boolean {
  if (context.method !== "publickey" || context.signature === undefined || context.blob === undefined) return false;
  return verifiesEd25519(key, context.blob, context.signature) === true;
}

const isAmong = (key: Buffer, keys: readonly Buffer[]): boolean =>
  keys.some((one) => one.length === key.length && timingSafeEqual(one, key));
