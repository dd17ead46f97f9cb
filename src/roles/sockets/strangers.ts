import { Counts } from "./quota.ts";

/** How many there may be: of a relay-host, connections without a complete opening (docs/wire.md, Limits). */
export interface StrangerBounds {
  readonly all: number;
  readonly perAddress: number;
  /**
   * How many times as many there may be for a moment: of many who come at once, each may have said who it is already, and is not to go before that could be read. 1 when left
   * out.
   */
  readonly atOnce?: number;
}

export const STRANGERS: StrangerBounds = { all: 512, perAddress: 64 };

export interface Stranger {
  /** By what its address is counted; null: not at all. */
  readonly addressKey: string | null;
  readonly since: number;
  destroy(): void;
}

/** For so many milliseconds one too many has its chance, and for so many looks: what it has said may wait to be read while the process is held up. */
const CHANCE_MS = 100;
const CHANCE_LOOKS = 2;
const LOOK_MS = 20;

interface Seen {
  key: string | null;
  /** When it came, and how many looks there had been by then. */
  readonly at: number;
  readonly look: number;
}

/** Who has come, and not yet said who it is. Nobody else is held up by them: one too many ends the oldest, and each has its time. */
export class Strangers {
  /** In the order in which they came. */
  readonly #all = new Map<Stranger, Seen>();
  readonly #addresses = new Counts();
  readonly #atOnce: number;
  #looks = 0;
  #looking = false;

  constructor(private readonly bounds: StrangerBounds = STRANGERS) {
    this.#atOnce = bounds.atOnce ?? 1;
  }

  get size(): number {
    return this.#all.size;
  }

  add(stranger: Stranger): void {
    this.#all.set(stranger, { key: null, at: performance.now(), look: this.#looks });
    this.recount(stranger, stranger.addressKey);
    if (this.#all.size > this.bounds.all) this.#tooMany(() => true, this.#all.size > this.bounds.all * this.#atOnce);
  }

  /** It is known by now whence it comes. */
  recount(stranger: Stranger, addressKey: string | null): void {
    const seen = this.#all.get(stranger);
    if (seen === undefined) return;
    if (seen.key !== null) this.#addresses.remove(seen.key);
    seen.key = addressKey;
    if (addressKey === null) return;
    this.#addresses.add(addressKey);
    const of = this.#addresses.of(addressKey);
    if (of > this.bounds.perAddress) this.#tooMany((key) => key === addressKey, of > this.bounds.perAddress * this.#atOnce);
  }

  /** End the oldest: at once where there are far too many, else once it has had its chance. */
  #tooMany(which: (addressKey: string | null) => boolean, atOnce: boolean): void {
    for (const [one, { key }] of this.#all) {
      if (!which(key)) continue;
      if (atOnce) this.#end(one);
      else this.#look();
      return;
    }
  }

  #look(): void {
    if (this.#looking) return;
    this.#looking = true;
    setTimeout(() => {
      this.#looking = false;
      this.#looks++;
      const now = performance.now();
      let waiting = false;
      for (const [one, { key, at, look }] of this.#all) {
        if (this.#all.size <= this.bounds.all && (key === null || this.#addresses.of(key) <= this.bounds.perAddress)) continue;
        if (now - at > CHANCE_MS && this.#looks - look > CHANCE_LOOKS) this.#end(one);
        else waiting = true;
      }
      if (waiting) this.#look();
    }, LOOK_MS);
  }

  #end(one: Stranger): void {
    this.remove(one);
    one.destroy();
  }

  /** It has said who it is, or is gone. Twice is harmless. */
  remove(stranger: Stranger): void {
    const key = this.#all.get(stranger)?.key ?? null;
    if (this.#all.delete(stranger) && key !== null) this.#addresses.remove(key);
  }

  /** End those that came before an instant. */
  endBefore(instant: number): void {
    for (const one of this.#all.keys()) {
      if (one.since > instant) return;
      this.#end(one);
    }
  }
}
