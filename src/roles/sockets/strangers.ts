import { Counts } from "./quota.ts";

/** How many there may be: of a relay-host, connections without a complete opening (docs/wire.md, Limits). */
export interface StrangerBounds {
  readonly all: number;
  readonly perAddress: number;
}

export const STRANGERS: StrangerBounds = { all: 512, perAddress: 64 };

export interface Stranger {
  /** By what its address is counted; null: not at all. */
  readonly addressKey: string | null;
  readonly since: number;
  destroy(): void;
}

/** Who has come, and not yet said who it is. Nobody else is held up by them: one too many ends the oldest, and each has its time. */
export class Strangers {
  /** By what each is counted, in the order in which they came. */
  readonly #all = new Map<Stranger, string | null>();
  readonly #addresses = new Counts();

  constructor(private readonly bounds: StrangerBounds = STRANGERS) {}

  get size(): number {
    return this.#all.size;
  }

  add(stranger: Stranger): void {
    this.#all.set(stranger, null);
    this.recount(stranger, stranger.addressKey);
    if (this.#all.size > this.bounds.all) this.#end(() => true);
  }

  /** It is known by now whence it comes. */
  recount(stranger: Stranger, addressKey: string | null): void {
    const before = this.#all.get(stranger);
    if (before === undefined) return;
    if (before !== null) this.#addresses.remove(before);
    this.#all.set(stranger, addressKey);
    if (addressKey === null) return;
    this.#addresses.add(addressKey);
    if (this.#addresses.of(addressKey) > this.bounds.perAddress) this.#end((key) => key === addressKey);
  }

  #end(which: (addressKey: string | null) => boolean): void {
    for (const [one, key] of this.#all) {
      if (!which(key)) continue;
      this.remove(one);
      one.destroy();
      return;
    }
  }

  /** It has said who it is, or is gone. Twice is harmless. */
  remove(stranger: Stranger): void {
    const key = this.#all.get(stranger) ?? null;
    if (this.#all.delete(stranger) && key !== null) this.#addresses.remove(key);
  }

  /** End those that came before an instant. */
  endBefore(instant: number): void {
    for (const one of this.#all.keys()) {
      if (one.since > instant) return;
      this.remove(one);
      one.destroy();
    }
  }
}
