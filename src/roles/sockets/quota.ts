/** Counts what is there, by a key. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string): void {
    this.#counts.set(key, this.of(key) + 1);
  }

  remove(key: string): void {
    const left = this.of(key) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}

/** Keys that are remembered; of more, those are forgotten that were longest not heard of. */
const MAX_KEYS = 16_384;
const MINUTE_MS = 60_000;

interface Bucket {
  left: number;
  at: number;
}

/** How often something may happen in a minute, by a key: a bucket that holds a minute's worth and fills evenly. */
export class Rates {
  readonly #buckets = new Map<string, Bucket>();

  constructor(
    private readonly perMinute: number,
    private readonly now: () => number,
  ) {}

  /** Take so much; false, and nothing is taken, where there is not as much. */
  take(key: string, cost = 1): boolean {
    const bucket = this.#bucket(key);
    if (bucket.left < cost) return false;
    bucket.left -= cost;
    return true;
  }

  /** Take what is there, at most so much. */
  fine(key: string, cost: number): void {
    const bucket = this.#bucket(key);
    bucket.left = Math.max(0, bucket.left - cost);
  }

  /** How much there is. */
  left(key: string): number {
    return this.#bucket(key).left;
  }

  /** Milliseconds until there is one again. */
  wait(key: string): number {
    return Math.ceil(Math.max(0, (1 - this.#bucket(key).left) * (MINUTE_MS / this.perMinute)));
  }

  #bucket(key: string): Bucket {
    const now = this.now();
    const known = this.#buckets.get(key);
    const left =
      known === undefined ? this.perMinute : Math.min(this.perMinute, known.left + ((now - known.at) * this.perMinute) / MINUTE_MS);
    const bucket = { left, at: now };
    // Behind all others, in the order in which they were heard of.
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > MAX_KEYS) this.#buckets.delete(this.#buckets.keys().next().value!);
    return bucket;
  }
}

/** By what an address is counted: itself, or of IPv6 its /64, which one customer has. Loopback is null: it is a program of this machine, an edge mostly. */
export function addressKey(address: string): string | null {
  const mapped = address.replace(/^::ffff:(?=\d+\.)/, "");
  if (mapped === "::1" || /^127\./.test(mapped)) return null;
  if (!mapped.includes(":")) return mapped;
  const [head = "", tail] = mapped.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const groups =
    tail === undefined ? first : [...first, ...Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => "0"), ...last];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
