/** What a frame is (RFC 6455, section 5.2). */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Longest payload of a control frame (section 5.5). */
const CONTROL_MAX = 125;
/** FIN, opcode, mask bit and 7 bits of length; 8 more bytes of length; 4 of the mask. */
const HEADER_MAX = 14;
/**
 * Pings and pongs that are taken in so many milliseconds, and data frames without data in a row: each is as much work as a full frame, and costs whoever sends it
 * nothing.
 */
const CONTROL_FRAMES_MAX = 200;
const CONTROL_FRAMES_MS = 10_000;
const EMPTY_FRAMES_MAX = 200;

/**
 * The payload with which a frame of either side is 64 KiB long at most, header included: so many bytes are whole records of TLS (16 KiB each, RFC 8446, section 5.1), each of which is a call
 * of the system's on both sides. A header is 4 bytes long there, and 8 with a mask.
 */
export const PAYLOAD_MAX = { masked: 64 * 1024 - 8, bare: 64 * 1024 - 4 } as const;

/** Why a connection has to be ended, and by which code (section 7.4.1). */
export class FrameError extends Error {
  override readonly name = "FrameError";

  constructor(
    readonly closeCode: 1002 | 1003 | 1008 | 1009,
    message: string,
  ) {
    super(message);
  }
}

export interface FrameSink {
  /** A part of a binary message, as it comes. It shares the memory of what was pushed, unmasked in place. */
  data(part: Buffer): void;
  ping(payload: Buffer): void;
  pong(payload: Buffer): void;
  /** @param code null where the frame has none */
  close(code: number | null, reason: string): void;
}

export interface FrameReaderOptions {
  /** Whether frames of the other side are masked: those of a client are, those of a server are not. */
  readonly masked: boolean;
  /** Longest payload of a data frame. */
  readonly maxPayload: number;
  /** Milliseconds that only go forward. */
  readonly now?: () => number;
}

const NOTHING = Buffer.alloc(0);

/**
 * Reads frames of binary messages from a byte stream, cut wherever it may be. Payloads are handed on as they come, so that no message is kept: where
 * one ends means nothing to whoever reads bytes.
 */
export class FrameReader {
  /** The beginning of a header, or of a control frame's payload. */
  #kept: Buffer = NOTHING;
  #opcode: number = OPCODE.binary;
  /** Bytes of the payload that are still to come. */
  #left = 0;
  #mask: Buffer | null = null;
  /** How far into the payload, for the mask. */
  #at = 0;
  /** Whether a fragmented message is under way. */
  #fragmented = false;
  #closed = false;
  #empty = 0;
  #controls = 0;
  #countedSince = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: FrameReaderOptions,
    private readonly sink: FrameSink,
  ) {}

  /** @throws FrameError when what comes does not follow the protocol */
  push(chunk: Buffer): void {
    let rest = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    this.#kept = NOTHING;
    // What follows a close frame is discarded (section 5.5.1).
    while (rest.length > 0 && !this.#closed) {
      const used = this.#left > 0 ? this.#payload(rest) : this.#header(rest);
      if (used === 0) {
        // Of a chunk that may be large, and somebody else's.
        this.#kept = Buffer.from(rest);
        return;
      }
      rest = rest.subarray(used);
    }
  }

  /** @returns the bytes that were used; 0 when more are needed */
  #header(bytes: Buffer): number {
    if (bytes.length < 2) return 0;
    const [first, second] = [bytes[0]!, bytes[1]!];
    const masked = (second & 0x80) !== 0;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const whole = 2 + lengthBytes + (masked ? 4 : 0);
    this.#checkHead(first, masked, short);
    if (bytes.length < whole) return 0;
    const length = lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length > this.options.maxPayload)
      throw new FrameError(1009, `a frame of ${length} bytes is longer than ${this.options.maxPayload}`);
    this.#mask = masked ? Buffer.from(bytes.subarray(whole - 4, whole)) : null;
    this.#opcode = first & 0x0f;
    this.#at = 0;
    this.#left = length;
    if (this.#opcode < OPCODE.close) this.#fragmented = (first & 0x80) === 0;
    this.#count(length);
    if (length === 0) this.#control(NOTHING);
    return whole;
  }

  #count(length: number): void {
    if (this.#opcode < OPCODE.close) {
      this.#empty = length > 0 ? 0 : this.#empty + 1;
      if (this.#empty > EMPTY_FRAMES_MAX) throw new FrameError(1008, `${EMPTY_FRAMES_MAX} frames in a row have no data`);
    } else if (this.#opcode !== OPCODE.close) {
      const now = (this.options.now ?? (() => performance.now()))();
      if (now - this.#countedSince > CONTROL_FRAMES_MS) {
        this.#countedSince = now;
        this.#controls = 0;
      }
      if (++this.#controls > CONTROL_FRAMES_MAX)
        throw new FrameError(1008, `more than ${CONTROL_FRAMES_MAX} pings and pongs came within ${CONTROL_FRAMES_MS / 1_000} s`);
    }
  }

  #checkHead(first: number, masked: boolean, short: number): void {
    const opcode = first & 0x0f;
    if ((first & 0x70) !== 0) throw new FrameError(1002, "a frame has reserved bits, and no extension was agreed on");
    if (masked !== this.options.masked)
      throw new FrameError(1002, masked ? "a frame of a server is masked" : "a frame of a client is not masked");
    if (opcode === OPCODE.text) throw new FrameError(1003, "messages are binary here, and this is text");
    const control = opcode >= OPCODE.close && opcode <= OPCODE.pong;
    if (control && ((first & 0x80) === 0 || short > CONTROL_MAX)) throw new FrameError(1002, "a control frame is fragmented or too long");
    if (!control && opcode !== OPCODE.binary && opcode !== OPCODE.continuation) throw new FrameError(1002, `there is no opcode ${opcode}`);
    if (!control && (opcode === OPCODE.continuation) !== this.#fragmented)
      throw new FrameError(1002, "a message goes on that has not begun, or begins before the last one ended");
  }

  #payload(bytes: Buffer): number {
    const data = this.#opcode < OPCODE.close;
    if (!data && bytes.length < this.#left) return 0;
    const part = bytes.subarray(0, Math.min(bytes.length, this.#left));
    if (this.#mask !== null) applyMask(part, this.#mask, this.#at);
    this.#at += part.length;
    this.#left -= part.length;
    if (data) this.sink.data(part);
    else this.#control(part);
    return part.length;
  }

  #control(payload: Buffer): void {
    if (this.#opcode === OPCODE.ping) this.sink.ping(Buffer.from(payload));
    else if (this.#opcode === OPCODE.pong) this.sink.pong(Buffer.from(payload));
    else if (this.#opcode === OPCODE.close) {
      if (payload.length === 1) throw new FrameError(1002, "a close frame has half a code");
      this.#closed = true;
      this.sink.close(payload.length === 0 ? null : payload.readUInt16BE(0), payload.toString("utf8", 2));
    }
  }
}

/**
 * The header of one unfragmented frame.
 *
 * @param mask four bytes with a client; null with a server
 */
export function frameHeader(opcode: number, length: number, mask: Buffer | null): Buffer {
  const header = Buffer.allocUnsafe(HEADER_MAX);
  const bit = mask === null ? 0 : 0x80;
  header[0] = 0x80 | opcode;
  let end = 2;
  if (length <= CONTROL_MAX) header[1] = bit | length;
  else if (length <= 0xffff) {
    header[1] = bit | 126;
    end = header.writeUInt16BE(length, 2);
  } else {
    header[1] = bit | 127;
    end = header.writeBigUInt64BE(BigInt(length), 2);
  }
  if (mask !== null) end += mask.copy(header, end);
  return header.subarray(0, end);
}

/** XOR bytes in place with a mask of four, whose first belongs to offset 0 of the payload (section 5.3). */
export function applyMask(bytes: Buffer, mask: Buffer, at = 0): void {
  const byte = (from: number, to: number): void => {
    for (let i = from; i < to; i++) bytes[i] = bytes[i]! ^ mask[(at + i) & 3]!;
  };
  if (bytes.length < 16) {
    byte(0, bytes.length);
    return;
  }
  // Words where memory is aligned for them, the edges byte by byte.
  const head = -bytes.byteOffset & 3;
  byte(0, head);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2);
  const word = new Int32Array(Uint8Array.from([0, 1, 2, 3], (i) => mask[(at + head + i) & 3]!).buffer)[0]!;
  for (let i = 0; i < words.length; i++) words[i] = words[i]! ^ word;
  byte(head + words.length * 4, bytes.length);
}

/** The same into other memory, which begins at a whole word; 0 is the offset of the first byte. */
export function maskInto(to: Buffer, from: Buffer, mask: Buffer): void {
  if ((from.byteOffset & 3) !== 0 || from.length < 16) {
    from.copy(to);
    applyMask(to.subarray(0, from.length), mask);
    return;
  }
  const count = from.length >> 2;
  const source = new Int32Array(from.buffer, from.byteOffset, count);
  const target = new Int32Array(to.buffer, to.byteOffset, count);
  const word = new Int32Array(Uint8Array.from(mask.subarray(0, 4)).buffer)[0]!;
  for (let i = 0; i < count; i++) target[i] = source[i]! ^ word;
  for (let i = count * 4; i < from.length; i++) to[i] = from[i]! ^ mask[i & 3]!;
}
