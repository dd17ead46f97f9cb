import { type ParsedKey, utils } from "ssh2";
import type { Signer } from "./authentication.ts";

/**
 * What signs with a private key, from its text in a format of OpenSSH or in PEM; null when the passphrase does not open it, or the text is no such
 * key.
 */
export function openPrivateKey(text: string, passphrase?: string): Signer | null {
  const parsed: unknown = utils.parseKey(text, passphrase);
  // ssh2 gives an array for some formats.
  const one: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (one instanceof Error || one === undefined || one === null) return null;
  const key = one as ParsedKey;
  if (!key.isPrivateKey()) return null;
  return {
    publicKey: Buffer.from(key.getPublicSSH()),
    async sign(data, hash) {
      const made: unknown = key.sign(data, hash);
      if (!Buffer.isBuffer(made)) throw made instanceof Error ? made : new TypeError("the key does not sign");
      return made;
    },
  };
}
