import { mask } from "./mask.ts";

/** The version of RFC 6455, as `Sec-WebSocket-Version` has it. */
export const WEBSOCKET_VERSION = "13";

/** Opcodes of RFC 6455, section 5.2. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
export type Opcode = (typeof OPCODE)[keyof typeof OPCODE];

/** Codes of RFC 6455, section 7.4.1. */
export const CLOSE = { normal: 1000, goingAway: 1001, protocolError: 1002, unacceptable: 1003, internal: 1011 } as const;

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CONTROL_MAX = 125;

/** `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key` (RFC 6455, section 4.2.2). */
export const acceptFor = (key: string): string => new Bun.CryptoHasher("sha1").update(key + GUID).digest("base64");

/** What came is no frame that the protocol has. `closeCode` is what the other side is told. */
export class FrameViolation extends Error {
  constructor(
    message: string,
    readonly closeCode: number,
  ) {
    super(message);
  }
}

/**
 * The head of an unfragmented frame, at most 14 bytes.
 *
 * @param key 4 random bytes where the payload is masked, as a client's has to be
 */
export function frameHead(opcode: Opcode, length: number, key: Uint8Array | null = null): Buffer {
  const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.allocUnsafe(2 + extended + (key === null ? 0 : 4));
  head[0] = 0x80 | opcode;
  head[1] = (key === null ? 0 : 0x80) | (extended === 0 ? length : extended === 2 ? 126 : 127);
  if (extended === 2) head.writeUInt16BE(length, 2);
  else if (extended === 8) head.writeBigUInt64BE(BigInt(length), 2);
  if (key !== null) head.set(key, 2 + extended);
  return head;
}

/** A whole unfragmented frame. The payload is copied. */
export function frame(opcode: Opcode, payload: Uint8Array, key: Uint8Array | null = null): Buffer {
  const head = frameHead(opcode, payload.length, key);
  const whole = Buffer.concat([head, payload], head.length + payload.length);
  if (key !== null) mask(whole.subarray(head.length), key);
  return whole;
}

/** The payload of a close frame. */
export function closePayload(code: number): Buffer {
  const payload = Buffer.allocUnsafe(2);
  payload.writeUInt16BE(code);
  return payload;
}

/** What a reader of frames hands on, in the order in which it came. */
export interface FrameEvents {
  /** Bytes of binary messages. Message boundaries are not told. Owned by whoever gets them, as part of the chunk that was pushed. */
  data(bytes: Buffer): void;
  /** A ping that has to be answered with its payload. */
  ping(payload: Buffer): void;
  /** A close frame; nothing is handed on after it. Code 1005 stands for one without a code. */
  close(code: number): void;
}

/**
 * Reads the frames of RFC 6455 out of the bytes of a connection, in whatever pieces they come. Nothing of a payload is kept: a long frame is handed on as it comes. No
 * extensions, no text.
 */
export class FrameReader {
  /** The head, or a control frame, as far as it has come. */
  #held = Buffer.alloc(0);
  /** Bytes of a binary payload that are still to come; and where in it we are. */
  #left = 0;
  #at = 0;
  #key: Buffer | null = null;
  #inMessage = false;
  #closed = false;

  /** @param from who sends: what a client sends is masked, what a server sends is not (section 5.1) */
  constructor(
    private readonly from: "client" | "server",
    private readonly events: FrameEvents,
  ) {}

  /**
   * Take what came. A masked payload is unmasked where it lies.
   *
   * @throws FrameViolation
   */
  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0 && !this.#closed) {
      if (this.#left > 0) {
        const bytes = rest.subarray(0, this.#left);
        if (this.#key !== null) mask(bytes, this.#key, this.#at % 4);
        this.#left -= bytes.length;
        this.#at += bytes.length;
        rest = rest.subarray(bytes.length);
        this.events.data(bytes);
        continue;
      }
      const whole = this.#held.length === 0 ? rest : Buffer.concat([this.#held, rest]);
      const taken = this.#takeHead(whole);
      if (taken === 0) {
        // At most a head and a control frame's payload.
        this.#held = Buffer.from(whole);
        return;
      }
      this.#held = Buffer.alloc(0);
      rest = whole.subarray(taken);
    }
  }

  /** Read a head, and the payload of a control frame with it. How many bytes that took; 0 where some are still to come. */
  #takeHead(bytes: Buffer): number {
    if (bytes.length < 2) return 0;
    const [first, second] = [bytes[0]!, bytes[1]!];
    const [final, opcode, masked, short] = [(first & 0x80) !== 0, first & 0x0f, (second & 0x80) !== 0, second & 0x7f];
    if ((first & 0x70) !== 0) throw new FrameViolation("a reserved bit is set", CLOSE.protocolError);
    if (masked !== (this.from === "client")) {
      throw new FrameViolation(masked ? "a server's frame is masked" : "a client's frame is not masked", CLOSE.protocolError);
    }
    const control = opcode >= OPCODE.close;
    if (control && (!final || short > CONTROL_MAX)) {
      throw new FrameViolation("a control frame is fragmented or too long", CLOSE.protocolError);
    }
    const extended = short === 126 ? 2 : short === 127 ? 8 : 0;
    const headLength = 2 + extended + (masked ? 4 : 0);
    if (bytes.length < headLength) return 0;
    const length = extended === 0 ? short : extended === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (!Number.isSafeInteger(length)) throw new FrameViolation("a frame is too long", CLOSE.protocolError);
    const key = masked ? bytes.subarray(headLength - 4, headLength) : null;
    if (control) {
      const end = headLength + length;
      if (bytes.length < end) return 0;
      const payload = Buffer.from(bytes.subarray(headLength, end));
      if (key !== null) mask(payload, key);
      this.#control(opcode, payload);
      return end;
    }
    this.#begin(opcode, final);
    this.#left = length;
    this.#at = 0;
    this.#key = key === null ? null : Buffer.from(key);
    return headLength;
  }

  #begin(opcode: number, final: boolean): void {
    if (opcode === OPCODE.text) throw new FrameViolation("a text message", CLOSE.unacceptable);
    if (opcode !== (this.#inMessage ? OPCODE.continuation : OPCODE.binary)) {
      throw new FrameViolation(`opcode ${opcode} is not expected`, CLOSE.protocolError);
    }
    this.#inMessage = !final;
  }

  #control(opcode: number, payload: Buffer): void {
    if (opcode === OPCODE.ping) this.events.ping(payload);
    else if (opcode === OPCODE.close && payload.length !== 1) {
      this.#closed = true;
      this.events.close(payload.length === 0 ? 1005 : payload.readUInt16BE(0));
    } else if (opcode !== OPCODE.pong) throw new FrameViolation(`opcode ${opcode} is not expected`, CLOSE.protocolError);
  }
}
