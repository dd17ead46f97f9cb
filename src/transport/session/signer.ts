import { utils } from "ssh2";
import { RelayError } from "../../domain/errors.ts";
import { publicKeyOf } from "./key-pair.ts";
import { typeOf } from "./keys.ts";

/** An ed25519 key pair that signs. */
export interface Ed25519Signer {
  /** The public key in the format of RFC 8709, section 4. */
  readonly key: Buffer;
  /** The 64 bytes of a signature over `data`. */
  sign(data: Buffer): Buffer;
}

/**
 * @param privateKey text of an ed25519 key in the format of OpenSSH, without a passphrase
 * @throws RelayError configuration_error
 */
export function signerOf(privateKey: string): Ed25519Signer {
  const key = publicKeyOf(privateKey);
  const parsed = utils.parseKey(privateKey);
  if (parsed instanceof Error || typeOf(key) !== "ssh-ed25519") throw new RelayError("configuration_error", "this is no ed25519 key");
  return {
    key,
    sign(data) {
      const signature = parsed.sign(data);
      if (signature instanceof Error) throw new RelayError("configuration_error", `the key does not sign: ${signature.message}`);
      return signature;
    },
  };
}
