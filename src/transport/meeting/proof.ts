import { createHmac, timingSafeEqual } from "node:crypto";
import { verifiesEd25519 } from "../session/keys.ts";
import type { OpeningMessage } from "./messages.ts";

/** A room: the SHA-256 of a worker's host key in the format of RFC 8709. */
export const roomOf = (hostKey: Buffer): Buffer => new Bun.CryptoHasher("sha256").update(hostKey).digest() as Buffer;

/** Who proves itself: the key pair of a worker or of a desktop. */
export interface Signer {
  /** The public key in the format of RFC 8709, section 4. */
  readonly key: Buffer;
  /** Resolves to the 64 bytes of an ed25519 signature. */
  sign(data: Buffer): Buffer;
}

/** What both sides know of an opening before it is proven. */
export interface Opened {
  readonly version: number;
  readonly role: OpeningMessage["type"];
  readonly room: Buffer;
  readonly relay: string;
  readonly relayNonce: Buffer;
  readonly clientNonce: Buffer;
  readonly key: Buffer;
  /** Empty but for `accept`. */
  readonly ticket: Buffer;
}

/** RFC 4251, section 5. */
function sshString(value: Buffer | string): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** T of docs/wire.md, Opening. */
function transcript(opened: Opened): Buffer {
  const { version, role, room, relay, relayNonce, clientNonce, key, ticket } = opened;
  const parts = ["clio-relay meeting", Buffer.of(version), role, room, relay, relayNonce, clientNonce, key, ticket];
  return Buffer.concat(parts.map(sshString));
}

const keyed = (token: string, label: string, text: Buffer): Buffer =>
  createHmac("sha256", token).update(sshString(label)).update(text).digest();

const signed = (token: string, text: Buffer): Buffer =>
  Buffer.concat([sshString("signature"), sshString(keyed(token, "binding", text)), text]);

/** What a client proves with: `signature` and `proof`; and what it will be answered with. */
export function prove(opened: Opened, token: string, signer: Signer): { signature: Buffer; proof: Buffer; answer: Buffer } {
  const text = transcript(opened);
  return { signature: signer.sign(signed(token, text)), proof: keyed(token, "client", text), answer: keyed(token, "relay", text) };
}

/** What a relay-host finds in an opening: a refusal, or which token it was and the answer to it. */
export type Verdict = { readonly refused: "token" | "key" } | { readonly token: number; readonly answer: Buffer };

/** Check an opening: token, room, signature, in this order. Each token is tried, so that which one fits cannot be told from the time it takes. */
export function check(opened: Opened, proof: Buffer, signature: Buffer, tokens: readonly string[]): Verdict {
  const text = transcript(opened);
  let token = -1;
  for (const [index, one] of tokens.entries()) if (timingSafeEqual(keyed(one, "client", text), proof)) token = index;
  const known = tokens[token];
  if (known === undefined) return { refused: "token" };
  if (opened.role !== "join" && !timingSafeEqual(roomOf(opened.key), opened.room)) return { refused: "key" };
  if (verifiesEd25519(opened.key, signed(known, text), signature) !== true) return { refused: "key" };
  return { token, answer: keyed(known, "relay", text) };
}

/** Whether two secrets are the same, in constant time. */
export const same = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
