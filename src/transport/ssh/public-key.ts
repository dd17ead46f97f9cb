/** The fields of an SSH binary string (RFC 4251, section 5: `string`, `mpint`), bounds checked. */
export class Fields {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  /** The next `string`; null where there is none, or it is cut short. */
  next(): Buffer | null {
    if (this.#at + 4 > this.bytes.length) return null;
    const length = this.bytes.readUInt32BE(this.#at);
    const start = this.#at + 4;
    if (length > this.bytes.length - start) return null;
    this.#at = start + length;
    return this.bytes.subarray(start, this.#at);
  }

  /** The next `uint32`; null where there is none. */
  number(): number | null {
    if (this.#at + 4 > this.bytes.length) return null;
    this.#at += 4;
    return this.bytes.readUInt32BE(this.#at - 4);
  }
}

/** Bits of the modulus of a public key of type ssh-rsa (RFC 4253, section 6.6); null for what is no such key. */
export function rsaBits(key: Buffer): number | null {
  const fields = new Fields(key);
  const [, , modulus] = [fields.next(), fields.next(), fields.next()];
  if (modulus === null || modulus === undefined) return null;
  const first = modulus.findIndex((byte) => byte !== 0);
  return first < 0 ? 0 : (modulus.length - first - 1) * 8 + (32 - Math.clz32(modulus[first]!));
}

/** The names of signature algorithms that a type of key can make (RFC 8332 for RSA). */
export const algorithmsOf = (type: string): readonly string[] => (type === "ssh-rsa" ? ["rsa-sha2-512", "rsa-sha2-256"] : [type]);
