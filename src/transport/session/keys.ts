import { createPublicKey, verify } from "node:crypto";
import { RelayError } from "../../domain/errors.ts";

const ED25519 = "ssh-ed25519";
/** Two strings with their lengths: the type, 32 bytes (RFC 8709, section 4). */
export const ED25519_LENGTH = 4 + ED25519.length + 4 + 32;

/**
 * The key of a line as authorized_keys, known_hosts and .pub files have it after what comes before: `TYPE BASE64 [comment]`.
 *
 * @throws RelayError configuration_error when the two do not agree
 */
export function publicKeyFromLine(line: string): Buffer {
  const [type = "", base64 = ""] = line.trim().split(/\s+/);
  const key = Buffer.from(base64, "base64");
  if (type === "" || typeOf(key) !== type) throw new RelayError("configuration_error", "this is no public key line of OpenSSH");
  return key;
}

/** A public key as the line of a .pub file, without a comment. */
export const lineOfPublicKey = (key: Buffer): string => `${typeOf(key)} ${key.toString("base64")}`;

/** What ssh-keygen -l shows of a key. */
export const fingerprintOf = (key: Buffer): string =>
  `SHA256:${new Bun.CryptoHasher("sha256").update(key).digest("base64").replace(/=+$/, "")}`;

/** The type that a public key names itself; empty where there is none. */
export function typeOf(key: Buffer): string {
  if (key.length < 4 || key.length < 4 + key.readUInt32BE(0)) return "";
  return key.toString("latin1", 4, 4 + key.readUInt32BE(0));
}

/** The format of RFC 8709, section 4, of an ed25519 public key's 32 bytes. */
export function sshEd25519(key: Uint8Array): Buffer {
  const head = Buffer.alloc(4 + ED25519.length + 4);
  head.writeUInt32BE(ED25519.length);
  head.write(ED25519, 4, "latin1");
  head.writeUInt32BE(key.length, 4 + ED25519.length);
  return Buffer.concat([head, key]);
}

/** The SubjectPublicKeyInfo of an ed25519 key up to its 32 bytes (RFC 8410, section 4). */
const SPKI_ED25519 = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Points of order 8 and less (RFC 8032, section 5.1), as 32 bytes without the bit of the sign, those included that are no canonical encoding: 0, 1, both y of order 8, -1, p, p + 1. Signatures by such
 * a key can be made without any secret.
 */
const SMALL_ORDER: ReadonlySet<string> = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
]);

function hasSmallOrder(point: Buffer): boolean {
  const unsigned = Buffer.from(point);
  unsigned[31]! &= 0x7f;
  return SMALL_ORDER.has(unsigned.toString("hex"));
}

/**
 * Whether a signature over `data` is that of an ed25519 public key in the format of RFC 8709, which belongs to somebody.
 *
 * @param signature its 64 bytes
 */
export function verifiesEd25519(key: Buffer, data: Buffer, signature: Buffer): boolean {
  if (key.length !== ED25519_LENGTH || typeOf(key) !== ED25519 || signature.length !== 64) return false;
  if (hasSmallOrder(key.subarray(-32))) return false;
  try {
    const publicKey = createPublicKey({ key: Buffer.concat([SPKI_ED25519, key.subarray(-32)]), format: "der", type: "spki" });
    return verify(null, data, publicKey, signature) === true;
  } catch {
    return false;
  }
}
