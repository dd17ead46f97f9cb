import { createHash, randomBytes } from "node:crypto";
import { RelayError } from "../../domain/errors.ts";

/** Bytes of secret, of the fingerprint of the worker's key, and of the check over both and the address. */
const SECRET_BYTES = 16;
const PRINT_BYTES = 32;
const CHECK_BYTES = 4;
/** Longest address of a relay-host in a code. */
export const ADDRESS_MAX = 256;
/** Longest line that is read as a code: its groups, blanks between them, and the address. */
export const CODE_MAX = 1_024;
const GROUPS = /.{4}/g;
const PREFIX = "clio1";
/** Crockford's base 32. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const DIGITS_LENGTH = Math.ceil(((SECRET_BYTES + PRINT_BYTES + CHECK_BYTES) * 8) / 5);

/** What a pairing code holds (docs/wire.md, Pairing). */
export interface PairingCode {
  readonly secret: Buffer;
  /** SHA-256 of the worker's public host key: what its room at a relay-host is called, too. */
  readonly hostPrint: Buffer;
  /** Of the relay-host at which both meet, as a person gave it. */
  readonly relayHost: string;
}

/** What a code has of a worker's public key, in the format of RFC 4253, section 6.6. */
export const hostPrintOf = (key: Buffer): Buffer => createHash("sha256").update(key).digest();

/** A code with a new secret. @throws RelayError usage for an address that no code can hold */
export function newPairingCode(hostKey: Buffer, relayHost: string): PairingCode {
  if (!isAddress(relayHost)) throw new RelayError("usage", `this is no address that a pairing code can hold: ${relayHost.slice(0, 100)}`);
  return { secret: randomBytes(SECRET_BYTES), hostPrint: hostPrintOf(hostKey), relayHost };
}

const isAddress = (text: string): boolean => text.length <= ADDRESS_MAX && /^[a-z]+:\/\/[\x21-\x7e]+$/.test(text);

/** The one line that a person reads, types or pipes. It holds the secret. */
export function writeCode({ secret, hostPrint, relayHost }: PairingCode): string {
  const payload = Buffer.concat([secret, hostPrint]);
  const digits = encode(Buffer.concat([payload, check(payload, relayHost)]));
  return `${PREFIX}-${digits.match(GROUPS)!.join("-")}@${relayHost}`;
}

/**
 * Read a line as a code. What it says when that fails holds nothing of it.
 *
 * @throws RelayError pairing_code_invalid
 */
export function readCode(line: string): PairingCode {
  const text = line.length <= CODE_MAX ? line.replace(/\s+/g, "") : "";
  const at = text.indexOf("@");
  const [groups, relayHost] = at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
  const digits = groups.replaceAll("-", "");
  if (!digits.toLowerCase().startsWith(PREFIX)) throw mistyped(`it does not begin with ${PREFIX}`);
  if (!isAddress(relayHost)) throw mistyped("there is no address of a relay-host after its @");
  const bytes = decode(digits.slice(PREFIX.length));
  const payload = bytes.subarray(0, SECRET_BYTES + PRINT_BYTES);
  if (!check(payload, relayHost).equals(bytes.subarray(payload.length))) throw mistyped("a character of it is another one");
  return { secret: payload.subarray(0, SECRET_BYTES), hostPrint: payload.subarray(SECRET_BYTES), relayHost };
}

const mistyped = (why: string): RelayError => new RelayError("pairing_code_invalid", `this is no pairing code: ${why}`);

const check = (payload: Buffer, relayHost: string): Buffer =>
  createHash("sha256").update("clio-relay pairing code 1\0").update(payload).update(relayHost).digest().subarray(0, CHECK_BYTES);

function encode(bytes: Buffer): string {
  let text = "";
  for (let bit = 0; bit < bytes.length * 8; bit += 5) {
    const at = bit >> 3;
    const two = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
    text += DIGITS[(two >> (11 - (bit & 7))) & 31]!;
  }
  return text;
}

function decode(text: string): Buffer {
  if (text.length !== DIGITS_LENGTH) throw mistyped(`it has ${text.length} characters in its groups, not ${DIGITS_LENGTH}`);
  // The last digit has bits that are left over: none of them is set.
  const bytes = Buffer.alloc(Math.ceil((text.length * 5) / 8));
  [...text.toUpperCase().replaceAll("O", "0").replace(/[IL]/g, "1")].forEach((digit, index) => {
    const value = DIGITS.indexOf(digit);
    if (value < 0) throw mistyped("a character of its groups is none of a code");
    const at = (index * 5) >> 3;
    const two = value << (11 - ((index * 5) & 7));
    bytes[at] = bytes[at]! | (two >> 8);
    if (at + 1 < bytes.length) bytes[at + 1] = bytes[at + 1]! | (two & 0xff);
  });
  if (bytes.at(-1) !== 0) throw mistyped("a character of it is another one");
  return bytes.subarray(0, -1);
}
