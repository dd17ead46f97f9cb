import { expect, test } from "bun:test";
import { createCipheriv, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import fc from "fast-check";
import { ownPackets, PacketOpener, PacketSealer } from "../../../src/transport/session/packets.ts";
import { eventually } from "../../runner/wait.ts";
import { pairOfDuplexes } from "./duplexes.ts";
import { open as openSession, serverOf } from "./peers.ts";

interface Sealer {
  allocPacket(bytes: number): Buffer;
  encrypt(packet: Buffer): void;
}
interface Opener {
  decrypt(chunk: Buffer, from: number, end: number): number | undefined;
}
/** ssh2's own, which are the measure of what these two have to understand and to say. */
const theirs = createRequire(import.meta.url)("ssh2/lib/protocol/crypto.js") as {
  init: Promise<void>;
  createCipher(config: object): Sealer;
  createDecipher(config: object): Opener;
};
await theirs.init;

const KEYS = { "aes-128-gcm": randomBytes(16), "aes-256-gcm": randomBytes(32) };
type Name = keyof typeof KEYS;
/** A nonce whose counter overflows into the next byte, and the next, within some packets. */
const nonce = (): Buffer => Buffer.from("0102030400000000fffffffe", "hex").fill(0xff, 4, 10);

/** Both ends of a way, with a party at each; what the opener was given. */
function way(name: Name, { sealer, opener }: { sealer: "ours" | "theirs"; opener: "ours" | "theirs" }) {
  const sent: Buffer[] = [];
  const got: Buffer[] = [];
  const info = { sslName: name, keyLen: KEYS[name].length, ivLen: 12, authLen: 16, stream: false };
  const outbound = {
    seqno: 0,
    cipherInfo: info,
    cipherKey: KEYS[name],
    cipherIV: nonce(),
    onWrite: (bytes: Buffer) => sent.push(Buffer.from(bytes)),
  };
  const inbound = {
    seqno: 0,
    decipherInfo: info,
    decipherKey: KEYS[name],
    decipherIV: nonce(),
    onPayload: (bytes: Buffer) => void got.push(bytes),
  };
  const protocol = { _protocol: { _cipher: null as unknown, _decipher: undefined as unknown, _kexinit: undefined } };
  let written = (): void => undefined;
  ownPackets(protocol, (listener) => {
    written = listener;
  });
  const made = { cipher: theirs.createCipher({ outbound }), decipher: theirs.createDecipher({ inbound }) };
  if (sealer === "ours") protocol._protocol._cipher = made.cipher;
  if (opener === "ours") protocol._protocol._decipher = made.decipher;
  const ends = {
    sealer: sealer === "ours" ? (protocol._protocol._cipher as Sealer) : made.cipher,
    opener: opener === "ours" ? (protocol._protocol._decipher as Opener) : made.decipher,
  };
  if (sealer === "ours") expect(ends.sealer).toBeInstanceOf(PacketSealer);
  if (opener === "ours") expect(ends.opener).toBeInstanceOf(PacketOpener);
  const seal = (payload: Uint8Array): void => {
    const packet = ends.sealer.allocPacket(payload.length);
    packet.set(payload, 5);
    ends.sealer.encrypt(packet);
  };
  return {
    seal,
    sent: () => Buffer.concat(sent),
    open: (chunk: Buffer) => ends.opener.decrypt(chunk, 0, chunk.length),
    got,
    written: () => written(),
  };
}

const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const places = [0, ...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => Buffer.from(bytes.subarray(places[i], end)));
};

test("what is sealed is opened as it was, by ssh2's own at either end, however it is cut on its way", () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 32_800 })), { minLength: 1, maxLength: 12 });
  const parties = fc.constantFrom(
    { sealer: "ours", opener: "theirs" } as const,
    { sealer: "theirs", opener: "ours" } as const,
    { sealer: "ours", opener: "ours" } as const,
  );
  fc.assert(
    fc.property(
      fc.constantFrom<Name>("aes-128-gcm", "aes-256-gcm"),
      parties,
      sizes,
      fc.array(fc.nat(), { maxLength: 20 }),
      fc.boolean(),
      (name, ends, lengths, places, prepares) => {
        const { seal, sent, open, got, written } = way(name, ends);
        const payloads = lengths.map((length) => randomBytes(length));
        for (const payload of payloads) {
          seal(payload);
          if (prepares) written();
        }
        for (const chunk of cut(sent(), places)) {
          open(chunk);
          if (prepares) written();
        }
        expect(Buffer.concat(got).equals(Buffer.concat(payloads))).toBe(true);
        expect(got.map(({ length }) => length)).toEqual(lengths);
      },
    ),
    { numRuns: 150 },
  );
});

test("a packet that comes byte by byte is handed on at its last one", () => {
  const { seal, sent, open, got } = way("aes-128-gcm", { sealer: "ours", opener: "ours" });
  seal(Buffer.from("hello"));
  const bytes = sent();
  for (let i = 0; i < bytes.length; i++) {
    expect(got.length).toBe(0);
    open(bytes.subarray(i, i + 1));
  }
  expect(got.map(String)).toEqual(["hello"]);
});

test("a packet that was altered anywhere is never handed on", () => {
  for (let at = 0; at < 52; at++) {
    const { seal, sent, open, got } = way("aes-128-gcm", { sealer: "ours", opener: "ours" });
    seal(Buffer.from("hello, who is there?"));
    const bytes = sent();
    expect(bytes.length).toBe(52);
    bytes[at]! ^= 1;
    // A longer length has the opener wait for what will not come; the session's own signs of life end that.
    if (at < 4) {
      try {
        open(bytes);
      } catch {}
    } else expect(() => open(bytes)).toThrow();
    expect(got.length).toBe(0);
  }
});

test("a length that no packet has is refused before anything is kept for it", () => {
  for (const length of [0, 15, 17, 34_992, 0x7fffffff, 0xffffffff]) {
    const { open } = way("aes-128-gcm", { sealer: "ours", opener: "ours" });
    const beginning = Buffer.alloc(4);
    beginning.writeUInt32BE(length);
    expect(() => open(beginning)).toThrow();
  }
});

test("a padding that is longer than its packet is refused, although its tag is right", () => {
  const { open, got } = way("aes-128-gcm", { sealer: "ours", opener: "ours" });
  const packet = Buffer.alloc(4 + 32, 0xc8);
  packet.writeUInt32BE(32);
  const cipher = createCipheriv("aes-128-gcm", KEYS["aes-128-gcm"], nonce());
  cipher.setAAD(packet.subarray(0, 4));
  const bytes = Buffer.concat([packet.subarray(0, 4), cipher.update(packet.subarray(4)), cipher.final(), cipher.getAuthTag()]);
  expect(() => open(bytes)).toThrow();
  expect(got.length).toBe(0);
});

test("a session seals and opens with these, and with new ones after each exchange of keys", async () => {
  const { client, server } = pairOfDuplexes();
  serverOf().server.serve(server);
  const session = await openSession(client);
  const inside = (session as unknown as { client: { _protocol: { rekey(): void; _cipher: unknown; _decipher: unknown } } }).client;
  const { _cipher: sealer, _decipher: opener } = inside._protocol;
  expect(sealer).toBeInstanceOf(PacketSealer);
  expect(opener).toBeInstanceOf(PacketOpener);
  inside._protocol.rekey();
  await eventually(() => inside._protocol._cipher !== sealer && inside._protocol._decipher !== opener);
  expect(inside._protocol._cipher).toBeInstanceOf(PacketSealer);
  expect(inside._protocol._decipher).toBeInstanceOf(PacketOpener);
  expect(await session.roundTrip()).toBeGreaterThan(0);
  session.close();
});
