import type { LinkKeys, PairingCodeMade, Revoked, Rotation } from "../domain/link-keys.ts";

/** The keys of a worker's own sessions. */
export interface KeyServices {
  list(): Promise<LinkKeys>;
  /**
   * Let a key in no longer, and end its sessions at once.
   *
   * @param key its fingerprint, or a beginning of it that no other has
   * @throws RelayError not_found, usage where it could be several, state_conflict
   */
  revoke(key: string): Promise<Revoked>;
  /** Give the worker another key after a time in which its desktops learn it. @throws RelayError state_conflict */
  rotate(overlapSeconds: number): Promise<Rotation>;
  /**
   * Make a pairing code; the one before ends with that.
   *
   * @param relayHost null: where the worker is
   * @throws RelayError state_conflict where the worker is at no relay-host, or at another one
   */
  pair(relayHost: string | null, keyTtlSeconds: number | null): Promise<PairingCodeMade>;
}
