import * as v from "valibot";
import { CLOSE_CODES, REFUSALS } from "./codes.ts";

/** Versions of the meeting protocol that this program speaks. */
export const OLDEST_VERSION = 1;
export const NEWEST_VERSION = 1;

/** The WebSocket subprotocol, and what a client sends first where there is no WebSocket. */
export const SUBPROTOCOL = "clio-relay-meeting.v1";
export const PREFACE = Buffer.from("clio-relay meeting 1\r\n", "latin1");

/** Longest wait of a desktop for its worker, in milliseconds. */
export const MAX_WAIT_MS = 60_000;
/** An ed25519 public key in the format of RFC 8709, section 4. */
export const KEY_BYTES = 51;
/** Nonces, rooms, tickets, proofs. */
export const WORD_BYTES = 32;
const SIGNATURE_BYTES = 64;

const base64 = (bytes: number) =>
  v.pipe(
    v.string(),
    v.length(Math.ceil(bytes / 3) * 4),
    v.transform((text): Buffer => Buffer.from(text, "base64")),
    v.check((decoded) => decoded.length === bytes, `must be base64 of ${bytes} bytes`),
  );
const whole = (most: number) => v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(most));
const word = base64(WORD_BYTES);

const INT31 = 2 ** 31 - 1;
const DAY_MS = 86_400_000;

const opening = {
  version: whole(255),
  relay: v.pipe(v.string(), v.regex(/^[a-z0-9._:[\]-]{1,300}$/)),
  nonce: word,
  key: base64(KEY_BYTES),
  room: word,
  signature: base64(SIGNATURE_BYTES),
  proof: word,
};

// v.object: members of a later version are passed over.
const Hello = v.object({ type: v.literal("hello"), oldest: whole(255), newest: whole(255), nonce: word });
const Register = v.object({ type: v.literal("register"), ...opening });
const Join = v.object({ type: v.literal("join"), ...opening, wait: whole(MAX_WAIT_MS), pairing: v.optional(v.boolean(), false) });
const Accept = v.object({ type: v.literal("accept"), ...opening, ticket: word });
const Registered = v.object({ type: v.literal("registered"), proof: word });
const Waiting = v.object({ type: v.literal("waiting"), proof: word, for: v.picklist(["worker", "admission"]) });
const JoiningMessage = v.object({
  type: v.literal("joining"),
  join: whole(INT31),
  key: base64(KEY_BYTES),
  ticket: word,
  expires: whole(DAY_MS),
  pairing: v.optional(v.boolean(), false),
  address: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{0,64}$/)),
});
const Refuse = v.object({ type: v.literal("refuse"), join: whole(INT31), reason: v.picklist(REFUSALS) });
const Joined = v.object({ type: v.literal("joined"), proof: word });
const Ping = v.object({ type: v.literal("ping"), id: whole(INT31) });
const Pong = v.object({ type: v.literal("pong"), id: whole(INT31) });
const Close = v.object({
  type: v.literal("close"),
  code: v.picklist(CLOSE_CODES),
  retry: v.optional(whole(DAY_MS), 0),
  reason: v.optional(v.picklist(REFUSALS)),
});

export const OpeningMessage = v.variant("type", [Register, Join, Accept]);
export type OpeningMessage = v.InferOutput<typeof OpeningMessage>;

/** What a client may send. */
export const FromClient = v.variant("type", [Register, Join, Accept, Refuse, Ping, Pong, Close]);
export type FromClient = v.InferOutput<typeof FromClient>;

/** What a relay-host may send. */
export const FromRelay = v.variant("type", [Hello, Registered, Waiting, JoiningMessage, Joined, Ping, Pong, Close]);
export type FromRelay = v.InferOutput<typeof FromRelay>;

export type Message = FromClient | FromRelay;
