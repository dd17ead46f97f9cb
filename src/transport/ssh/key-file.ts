import fs from "node:fs";
import { readRegular } from "../../lib/files/regular-file.ts";
import { typeOf } from "../session/keys.ts";
import { Fields } from "./public-key.ts";

/** A private key on disk, not yet opened. */
export interface KeyFile {
  readonly path: string;
  readonly text: string;
  readonly encrypted: boolean;
  /** In the format of RFC 4253, section 6.6; null where neither the file nor PATH.pub tells it. */
  readonly publicKey: Buffer | null;
}

/** Why a key file is passed over. */
export type Unusable = { readonly why: string };

const MAX_BYTES = 256 * 1024;
const MAGIC = Buffer.from("openssh-key-v1\0");
const ARMOUR = /-----BEGIN ([A-Z ]+)-----\r?\n([\s\S]*?)-----END \1-----/;
/** What ssh2 signs with. */
const TYPES = /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** Look at a private key file; null when there is none. Nothing is decrypted. */
export function lookAtKey(path: string, uid: number): KeyFile | Unusable | null {
  let found: ReturnType<typeof readRegular>;
  let mode = 0;
  let owner = -1;
  try {
    found = readRegular(path, MAX_BYTES, "follow");
    if (typeof found !== "string") ({ mode, uid: owner } = fs.statSync(path));
  } catch (error) {
    return { why: `cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown"})` };
  }
  if (found === "absent") return null;
  if (typeof found === "string") return { why: "is no key" };
  const key = inspectKey(path, found.text, publicPart(path));
  // As ssh does: a private key that others can read is not the user's alone.
  const open = uid >= 0 && owner === uid && (mode & 0o077) !== 0;
  return open && "text" in key && key.text !== "" ? { why: "can be read by others; chmod 600 it" } : key;
}

function publicPart(path: string): Buffer | null {
  try {
    const found = readRegular(`${path}.pub`, MAX_BYTES, "follow");
    return typeof found === "string" ? null : publicKeyOfLine(found.text);
  } catch {
    return null;
  }
}

/** The key of a line `TYPE BASE64 COMMENT`. */
function publicKeyOfLine(line: string): Buffer | null {
  const [type, base64] = line.trim().split(/[ \t]+/);
  const key = Buffer.from(base64 ?? "", "base64");
  return type !== undefined && typeOf(key) === type ? key : null;
}

/** What kind of key a text is: the formats that ssh-keygen(1) writes. */
export function inspectKey(path: string, text: string, beside: Buffer | null): KeyFile | Unusable {
  const [, label, body] = ARMOUR.exec(text) ?? [];
  if (label === undefined || body === undefined) {
    // IdentityFile may name the public half of a key that the agent has.
    const key = publicKeyOfLine(text);
    return key === null ? { why: "is no private key" } : { path, text: "", encrypted: false, publicKey: key };
  }
  if (label === "OPENSSH PRIVATE KEY") return inspectOpenSsh(path, text, Buffer.from(body, "base64"));
  if (label === "ENCRYPTED PRIVATE KEY" || label === "PRIVATE KEY") return { why: "is in PKCS#8 format; ssh-keygen -p rewrites it" };
  if (label !== "RSA PRIVATE KEY" && label !== "EC PRIVATE KEY") return { why: "is of a type that is not supported" };
  return { path, text, encrypted: /^Proc-Type: 4,ENCRYPTED/m.test(body), publicKey: beside };
}

/** Ciphers that the passphrase may be behind. */
const CIPHERS = /^(?:none|aes(?:128|192|256)-(?:cbc|ctr|gcm@openssh\.com))$/;
/** More rounds of bcrypt than this stop everything else for a minute. ssh-keygen's default is 16, later 24. */
const MAX_ROUNDS = 512;

/** PROTOCOL.key of OpenSSH: magic, cipher, KDF, its options, number of keys, public key, the encrypted rest. */
function inspectOpenSsh(path: string, text: string, bytes: Buffer): KeyFile | Unusable {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) return { why: "is damaged" };
  const fields = new Fields(bytes.subarray(MAGIC.length));
  const cipher = fields.next()?.toString("latin1");
  fields.next();
  const derivation = new Fields(fields.next() ?? Buffer.alloc(0));
  derivation.next();
  const rounds = derivation.number() ?? 0;
  const count = fields.number();
  const publicKey = fields.next();
  if (cipher === undefined || count !== 1 || publicKey === null) return { why: "is damaged" };
  const type = typeOf(publicKey);
  if (!TYPES.test(type)) return { why: `is of a type that is not supported here (${type === "" ? "unknown" : type.slice(0, 64)})` };
  if (!CIPHERS.test(cipher) || rounds > MAX_ROUNDS)
    return { why: `is encrypted in a way that is not supported here (${cipher.slice(0, 64)})` };
  return { path, text, encrypted: cipher !== "none", publicKey: Buffer.from(publicKey) };
}
