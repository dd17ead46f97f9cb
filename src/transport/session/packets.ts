import { type CipherGCM, createCipheriv, createDecipheriv, type DecipherGCM, randomFillSync } from "node:crypto";

/** Length before a packet, and tag behind it (RFC 5647, section 7). */
const LENGTH_BYTES = 4;
const TAG_BYTES = 16;
const BLOCK_BYTES = 16;
const PADDING_LEAST = 4;
/** RFC 4253, section 6.1: what everybody takes. */
const PACKET_MAX = 35_000;
/** Packets of up to this leave as one piece, longer ones in three: a copy costs more than two pieces. */
const ONE_PIECE_MAX = 2_048;
const FIRST_ROOM = 1_024;
const RANDOM_BYTES = 4_096;

/** What ssh2 keeps in a cipher of its own and does not declare. */
interface TheirSealer {
  outSeqno: number;
  readonly _onWrite: (bytes: Buffer) => void;
  readonly _encSSLName: string;
  readonly _encKey: Buffer;
  readonly _encIV: Buffer;
}
interface TheirOpener {
  inSeqno: number;
  readonly _onPayload: OnPayload;
  readonly _decipherSSLName: string;
  readonly _decipherKey: Buffer;
  readonly _decipherIV: Buffer;
}

/** Takes a packet's payload. A number, or false, ends the reading of what has come: from there on another decipher reads it. */
type OnPayload = (payload: Buffer) => number | false | undefined;

/** The part of ssh2's protocol that has the ciphers: it sets new ones at the end of each key exchange. */
export interface PacketProtocol {
  _cipher: unknown;
  _decipher: unknown;
  /** Set while keys are exchanged: packets that are made meanwhile may be sent later. */
  readonly _kexinit: unknown;
}

type Gcm = "aes-128-gcm" | "aes-256-gcm";

const isGcm = (name: unknown): name is Gcm => name === "aes-128-gcm" || name === "aes-256-gcm";

/**
 * Seals packets by AES-GCM (RFC 5647) as ssh2's own cipher does, and takes its place: with memory that is used again where that one takes new memory for each packet,
 * which the collector gives back late.
 */
export class PacketSealer {
  outSeqno: number;
  readonly #write: (bytes: Buffer) => void;
  readonly #name: Gcm;
  readonly #key: Buffer;
  readonly #iv: Buffer;
  #room = Buffer.allocUnsafeSlow(FIRST_ROOM);
  readonly #random = Buffer.allocUnsafeSlow(RANDOM_BYTES);
  #randomUsed = RANDOM_BYTES;
  #next: CipherGCM | null = null;
  #over = false;

  constructor(
    theirs: TheirSealer,
    name: Gcm,
    private readonly protocol: PacketProtocol,
  ) {
    this.outSeqno = theirs.outSeqno;
    this.#write = theirs._onWrite;
    this.#name = name;
    this.#key = theirs._encKey;
    this.#iv = theirs._encIV;
  }

  free(): void {
    this.#over = true;
    this.#next = null;
  }

  /** Do what can be done for the next packet before it is there. */
  prepare(): void {
    if (!this.#over) this.#next ??= this.#cipher();
  }

  #cipher(): CipherGCM {
    return createCipheriv(this.#name, this.#key, this.#iv);
  }

  /** A packet with its length and padding in place; the payload belongs at byte 5. It is sealed before the next one is asked for. */
  allocPacket(payloadLength: number): Buffer {
    const unpadded = 1 + payloadLength;
    const least = BLOCK_BYTES - (unpadded % BLOCK_BYTES);
    const padding = least < PADDING_LEAST ? least + BLOCK_BYTES : least;
    const length = unpadded + padding;
    const packet = this.#memory(LENGTH_BYTES + length);
    packet.writeUInt32BE(length, 0);
    packet[LENGTH_BYTES] = padding;
    if (this.#randomUsed + padding > RANDOM_BYTES) {
      randomFillSync(this.#random);
      this.#randomUsed = 0;
    }
    this.#random.copy(packet, LENGTH_BYTES + unpadded, this.#randomUsed, this.#randomUsed + padding);
    this.#randomUsed += padding;
    return packet;
  }

  #memory(bytes: number): Buffer {
    if (this.protocol._kexinit !== undefined) return Buffer.allocUnsafe(bytes);
    if (this.#room.length < bytes) this.#room = Buffer.allocUnsafeSlow(bytes);
    return this.#room.subarray(0, bytes);
  }

  encrypt(packet: Buffer): void {
    if (this.#over) return;
    const cipher = this.#next ?? this.#cipher();
    this.#next = null;
    cipher.setAAD(packet.subarray(0, LENGTH_BYTES));
    const body = cipher.update(packet.subarray(LENGTH_BYTES));
    cipher.final();
    const tag = cipher.getAuthTag();
    if (packet.length <= ONE_PIECE_MAX) {
      const whole = Buffer.allocUnsafe(packet.length + TAG_BYTES);
      whole.set(packet.subarray(0, LENGTH_BYTES), 0);
      whole.set(body, LENGTH_BYTES);
      whole.set(tag, packet.length);
      this.#write(whole);
    } else {
      this.#write(Buffer.from(packet.subarray(0, LENGTH_BYTES)));
      this.#write(body);
      this.#write(tag);
    }
    countUp(this.#iv);
    this.outSeqno = (this.outSeqno + 1) >>> 0;
  }
}

/** Opens packets, cut wherever they may be, as ssh2's own decipher does, and takes its place. What belongs to a packet is handed on when all of it is there and its tag is right. */
export class PacketOpener {
  inSeqno: number;
  /** ssh2 sets another while keys are exchanged. */
  _onPayload: OnPayload;
  readonly #name: Gcm;
  readonly #key: Buffer;
  readonly #iv: Buffer;
  /** The beginning of a packet whose end has not come. */
  #room: Buffer | null = null;
  #kept = 0;
  #next: DecipherGCM | null = null;
  #over = false;

  constructor(theirs: TheirOpener, name: Gcm) {
    this.inSeqno = theirs.inSeqno;
    this._onPayload = theirs._onPayload;
    this.#name = name;
    this.#key = theirs._decipherKey;
    this.#iv = theirs._decipherIV;
  }

  free(): void {
    this.#over = true;
    this.#room = null;
    this.#next = null;
  }

  /** Do what can be done for the next packet before it is there. */
  prepare(): void {
    if (!this.#over) this.#next ??= this.#decipher();
  }

  #decipher(): DecipherGCM {
    return createDecipheriv(this.#name, this.#key, this.#iv);
  }

  /**
   * @param from where in the chunk, up to `end`, unread bytes begin
   * @returns where another decipher reads on; undefined where all has been read
   * @throws where a length is none of a packet, or a tag is wrong
   */
  decrypt(chunk: Buffer, from: number, end: number): number | undefined {
    let at = from;
    while (at < end) {
      const isCut = this.#kept > 0;
      if (isCut) at = this.#complete(chunk, at, end);
      const there = isCut ? this.#kept : end - at;
      const sealed = isCut ? this.#room! : at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end);
      const length = there < LENGTH_BYTES ? null : lengthOf(sealed);
      const whole = length === null ? Number.POSITIVE_INFINITY : LENGTH_BYTES + length + TAG_BYTES;
      if (there < whole) {
        if (!isCut) this.#keep(sealed);
        return undefined;
      }
      if (isCut) this.#kept = 0;
      else at += whole;
      const next = this._onPayload(this.#open(sealed, whole));
      if (next !== undefined) return next === false ? at : next;
    }
    return undefined;
  }

  #keep(beginning: Buffer): void {
    this.#room ??= Buffer.allocUnsafeSlow(PACKET_MAX + TAG_BYTES);
    this.#room.set(beginning, 0);
    this.#kept = beginning.length;
  }

  /** Takes what the kept beginning lacks, as far as it is there; where the rest begins. */
  #complete(chunk: Buffer, from: number, end: number): number {
    const room = this.#room!;
    let at = from;
    const take = (upTo: number): void => {
      const count = Math.min(upTo - this.#kept, end - at);
      chunk.copy(room, this.#kept, at, at + count);
      this.#kept += count;
      at += count;
    };
    if (this.#kept < LENGTH_BYTES) take(LENGTH_BYTES);
    if (this.#kept >= LENGTH_BYTES) take(LENGTH_BYTES + lengthOf(room) + TAG_BYTES);
    return at;
  }

  /** The payload of the packet at the beginning. */
  #open(sealed: Buffer, whole: number): Buffer {
    const tagAt = whole - TAG_BYTES;
    const decipher = this.#next ?? this.#decipher();
    this.#next = null;
    decipher.setAAD(sealed.subarray(0, LENGTH_BYTES));
    decipher.setAuthTag(sealed.subarray(tagAt, whole));
    const opened = decipher.update(sealed.subarray(LENGTH_BYTES, tagAt));
    decipher.final();
    countUp(this.#iv);
    this.inSeqno = (this.inSeqno + 1) >>> 0;
    const payloadEnd = opened.length - opened[0]!;
    if (payloadEnd < 1) throw new Error("Bad padding length");
    return opened.subarray(1, payloadEnd);
  }
}

/** @throws where it cannot be one, before anything is kept for it */
function lengthOf(packet: Buffer): number {
  const length = packet.readUInt32BE(0);
  if (length + LENGTH_BYTES + TAG_BYTES > PACKET_MAX || length < BLOCK_BYTES || length % BLOCK_BYTES !== 0)
    throw new Error("Bad packet length");
  return length;
}

/** The invocation counter of the nonce (RFC 5647, section 7.1). */
function countUp(iv: Buffer): void {
  for (let i = 11; i >= 4; i--) {
    const next = (iv[i]! + 1) & 0xff;
    iv[i] = next;
    if (next !== 0) return;
  }
}

/**
 * From here on packets of a session are sealed and opened by these two, whenever keys have been exchanged. To be called before they are for the first time.
 *
 * @param whenWritten tells of a time at which something was just written, so that nobody waits
 */
export function ownPackets(session: unknown, whenWritten: (listener: () => void) => void = () => undefined): void {
  const protocol = (session as { readonly _protocol?: PacketProtocol })._protocol;
  if (protocol?._cipher === undefined) throw new TypeError("ssh2 is another version than the one that this was written for");
  let { _cipher: sealer, _decipher: opener } = protocol;
  Object.defineProperty(protocol, "_cipher", {
    get: () => sealer,
    set: (theirs: Partial<TheirSealer>) => {
      const name = theirs._encSSLName;
      sealer = isGcm(name) ? new PacketSealer(theirs as TheirSealer, name, protocol) : theirs;
    },
  });
  Object.defineProperty(protocol, "_decipher", {
    get: () => opener,
    set: (theirs: Partial<TheirOpener>) => {
      const name = theirs._decipherSSLName;
      opener = isGcm(name) ? new PacketOpener(theirs as TheirOpener, name) : theirs;
    },
  });
  whenWritten(() => {
    if (sealer instanceof PacketSealer) sealer.prepare();
    if (opener instanceof PacketOpener) opener.prepare();
  });
}
