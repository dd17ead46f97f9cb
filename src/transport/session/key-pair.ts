import { utils } from "ssh2";
import { RelayError } from "../../domain/errors.ts";
import { ED25519_LENGTH } from "./keys.ts";

/** An ed25519 key pair in the formats of OpenSSH. */
export interface KeyPair {
  /** The content of a private key file, without a passphrase. */
  readonly privateKey: string;
  /** One line of authorized_keys. */
  readonly publicLine: string;
}

/** @param comment for people; it appears in both halves */
export function makeKeyPair(comment: string): KeyPair {
  for (;;) {
    const { private: privateKey, public: publicLine } = utils.generateKeyPairSync("ed25519", { comment });
    // ssh2 takes a first byte 0 off a key, as if it were a number: one of some hundred is no key then.
    if (Buffer.from(publicLine.split(" ")[1] ?? "", "base64").length === ED25519_LENGTH) return { privateKey, publicLine };
  }
}

/**
 * The public half of a private key without passphrase, in the format of RFC 4253, section 6.6.
 *
 * @throws RelayError configuration_error when the text is no such key
 */
export function publicKeyOf(privateKey: string): Buffer {
  const key = utils.parseKey(privateKey);
  // ssh2 gives an array for some formats.
  const one: unknown = Array.isArray(key) ? (key as unknown[])[0] : key;
  if (one instanceof Error || !key || key instanceof Error || !key.isPrivateKey()) {
    throw new RelayError("configuration_error", "this is no private key in a format of OpenSSH, or it has a passphrase");
  }
  return key.getPublicSSH();
}
