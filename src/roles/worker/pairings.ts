import type { PairingCodeMade } from "../../domain/link-keys.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { newPairingCode, writeCode } from "../../transport/pairing/code.ts";
import { pairingKey } from "../../transport/pairing/pairing-key.ts";
import type { PairingDoor } from "../../transport/session/admission.ts";
import type { PairingFate } from "../../transport/session/admission-words.ts";
import { publicKeyOf } from "../../transport/session/key-pair.ts";
import { fingerprintOf } from "../../transport/session/keys.ts";

/** How long a code can be used, in milliseconds, and how often a wrong proof may come meanwhile. */
const VALID_MS = 10 * 60_000;
const TRIES = 5;
/** How many dead codes are remembered, so that whoever has one is told why it is. */
const REMEMBERED = 16;

interface Code {
  readonly key: Buffer;
  readonly ttlSeconds: number | null;
  /** By the wall clock, as it was said, and by the one that does not go back. */
  readonly expiresAt: number;
  readonly deadline: number;
  tries: number;
  over: Exclude<PairingFate, "open"> | null;
}

export interface NewCode {
  readonly cluster: string;
  /** The worker's private key. */
  readonly hostKey: string;
  readonly relayHost: string;
  readonly ttlSeconds: number | null;
}

/** The pairing codes of a running worker, of which it keeps the public halves. One is open at a time. */
export class Pairings implements PairingDoor {
  /** The last is the newest. */
  readonly #codes: Code[] = [];

  /** @param record lets a key in for good: written down when it resolves */
  constructor(
    private readonly clock: Clock,
    private readonly record: (client: Buffer, comment: string, ttlSeconds: number | null) => Promise<unknown>,
  ) {}

  /** Make a code; the one before ends with that. @throws RelayError usage for an address that no code can hold */
  make({ cluster, hostKey, relayHost, ttlSeconds }: NewCode): PairingCodeMade {
    const host = publicKeyOf(hostKey);
    const code = newPairingCode(host, relayHost);
    const expiresAt = this.clock.now() + VALID_MS;
    const before = this.#codes.at(-1);
    // It is as if it never was: whoever has it learns nothing.
    if (before !== undefined && this.fate(before.key) === "open") this.#codes.pop();
    const deadline = this.clock.monotonic() + VALID_MS;
    this.#codes.push({ key: pairingKey(code).key, ttlSeconds, expiresAt, deadline, tries: 0, over: null });
    if (this.#codes.length > REMEMBERED) this.#codes.shift();
    return {
      code: writeCode(code),
      expires_at: new Date(expiresAt).toISOString(),
      cluster,
      relay_host: relayHost,
      host_key: fingerprintOf(host),
    };
  }

  fate(key: Buffer): PairingFate | null {
    const code = this.#codes.find((one) => one.key.equals(key));
    if (code === undefined) return null;
    if (code.over === null && (this.clock.now() >= code.expiresAt || this.clock.monotonic() >= code.deadline)) code.over = "expired";
    return code.over ?? "open";
  }

  failed(): void {
    const code = this.#codes.at(-1);
    if (code === undefined || this.fate(code.key) !== "open") return;
    if (++code.tries >= TRIES) code.over = "tries";
  }

  async admit(key: Buffer, client: Buffer, comment: string): Promise<boolean> {
    const code = this.#codes.find((one) => one.key.equals(key));
    if (code === undefined || this.fate(key) !== "open") return false;
    code.over = "used";
    await this.record(client, comment, code.ttlSeconds);
    return true;
  }
}
