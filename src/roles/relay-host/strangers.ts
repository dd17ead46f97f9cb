import { Counts } from "./quota.ts";

/** Connections without a complete opening (docs/wire.md, Limits). */
const MAX = 512;
const MAX_PER_ADDRESS = 64;

export interface Stranger {
  /** By what its address is counted; null: not at all. */
  readonly addressKey: string | null;
  readonly since: number;
  destroy(): void;
}

/** Who has come, and not yet said who it is. Nobody else is held up by them: one too many ends the oldest, and each has its time. */
export class Strangers {
  /** In the order in which they came. */
  readonly #all = new Set<Stranger>();
  readonly #addresses = new Counts();

  get size(): number {
    return this.#all.size;
  }

  add(stranger: Stranger): void {
    const { addressKey } = stranger;
    this.#all.add(stranger);
    if (addressKey !== null) {
      this.#addresses.add(addressKey);
      if (this.#addresses.of(addressKey) > MAX_PER_ADDRESS) this.#end((one) => one.addressKey === addressKey);
    }
    if (this.#all.size > MAX) this.#end(() => true);
  }

  #end(which: (stranger: Stranger) => boolean): void {
    for (const one of this.#all) {
      if (!which(one)) continue;
      this.remove(one);
      one.destroy();
      return;
    }
  }

  /** It has said who it is, or is gone. Twice is harmless. */
  remove(stranger: Stranger): void {
    if (this.#all.delete(stranger) && stranger.addressKey !== null) this.#addresses.remove(stranger.addressKey);
  }

  /** End those that came before an instant. */
  endBefore(instant: number): void {
    for (const one of this.#all) {
      if (one.since > instant) return;
      this.remove(one);
      one.destroy();
    }
  }
}
