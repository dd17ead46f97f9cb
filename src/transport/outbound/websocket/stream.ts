import { randomFillSync } from "node:crypto";
import { Duplex } from "node:stream";
import { giveBack } from "../../../lib/system/give-back.ts";
import { FrameError, FrameReader, frameHeader, maskInto, OPCODE, PAYLOAD_MAX } from "./frames.ts";

/** Longest frame that is taken (docs/wire.md, Carriers). */
const RECEIVE_MAX = 256 * 1024;
/** Room for a header before a payload: the longest, up to a whole number of words. */
const HEADER_ROOM = 16;
/** Reads are not asked for while more than this waits to be read. */
const HIGH = 256 * 1024;
const WRITE_HIGH = 64 * 1024;
/** While more than this waits, in bytes, pings are not answered; the last one is as soon as the connection takes more (RFC 6455, section 5.5.3). */
const PONG_HIGH = 16 * 1024;
/** How long the other side may take to answer our close frame, in milliseconds. */
const CLOSING_MS = 2_000;
/** Close codes (RFC 6455, section 7.4.1). */
const NORMAL = 1_000;
const GOING_AWAY = 1_001;

/** How a WebSocket was closed by the other side. */
export interface WebSocketEnd {
  /** Null where the other side named none. */
  readonly code: number | null;
  /** 123 bytes at most; whatever the other side liked to say. */
  readonly reason: string;
}

/**
 * The bytes of a WebSocket's binary messages as a stream (RFC 6455), on a connection that has been upgraded. What is not read is not taken from the
 * connection, and what cannot be sent is not taken from the writer. A WebSocket has no half-close: `end()` closes it in both directions, after what was
 * written. A connection that breaks, or ends without a close frame, is an error.
 */
export class WebSocketStream extends Duplex {
  /** Nobody else knows the memory of what is read here, and what was written is not looked at again. */
  readonly exclusive = true;
  /** The close frame that came; null while none has. */
  closedBy: WebSocketEnd | null = null;
  readonly #reader: FrameReader;
  readonly #masks: boolean;
  #sentClose = false;
  /** What has come with the present chunk. */
  #gathered: Buffer | null = null;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #owedPong: Buffer | null = null;
  /** Called when the connection takes more. */
  #taken: (() => void) | null = null;

  /** @param role which side this is: a client masks what it sends */
  constructor(
    private readonly connection: Duplex,
    role: "client" | "server",
  ) {
    super({ allowHalfOpen: false, readableHighWaterMark: HIGH, writableHighWaterMark: WRITE_HIGH });
    this.#masks = role === "client";
    this.#reader = new FrameReader(
      { masked: role === "server", maxPayload: RECEIVE_MAX },
      {
        data: (part) => this.#gather(part),
        ping: (payload) => this.#pong(payload),
        pong: () => undefined,
        close: (code, reason) => this.#closedByPeer({ code, reason }),
      },
    );
    connection.on("data", (chunk: Buffer) => this.#read(chunk));
    connection.on("drain", () => {
      const owed = this.#owedPong;
      this.#owedPong = null;
      if (owed !== null) this.#pong(owed);
      const taken = this.#taken;
      this.#taken = null;
      taken?.();
    });
    connection.on("end", () => this.#cut());
    connection.on("close", () => this.#cut());
    connection.on("error", (error: Error) => this.destroy(error));
    connection.pause();
  }

  /** Parts of one chunk move together over the heads between them: fewer and larger pieces are less work for whoever reads. */
  #gather(part: Buffer): void {
    const before = this.#gathered;
    if (before === null) {
      this.#gathered = part;
      return;
    }
    const memory = Buffer.from(part.buffer);
    memory.copyWithin(before.byteOffset + before.length, part.byteOffset, part.byteOffset + part.length);
    this.#gathered = memory.subarray(before.byteOffset, before.byteOffset + before.length + part.length);
  }

  #handOn(): void {
    const gathered = this.#gathered;
    this.#gathered = null;
    if (gathered !== null && !this.push(gathered)) this.connection.pause();
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.push(chunk);
      this.#handOn();
    } catch (error) {
      this.#close(error instanceof FrameError ? error.closeCode : GOING_AWAY);
      this.destroy(error as Error);
    }
  }

  /** Without a close frame the end could be a cut. */
  #cut(): void {
    if (this.closedBy === null && !this.destroyed) this.destroy(new Error("the connection ended without a close frame"));
    else this.destroy();
  }

  #closedByPeer(end: WebSocketEnd): void {
    this.#handOn();
    this.closedBy = end;
    this.#close(NORMAL);
    this.connection.end();
    this.push(null);
  }

  /** @returns whether more may be sent at once */
  #send(opcode: number, payload: Buffer): boolean {
    if (!this.#masks) {
      this.connection.cork();
      this.connection.write(frameHeader(opcode, payload.length, null));
      const more = payload.length === 0 || this.connection.write(payload);
      this.connection.uncork();
      return more;
    }
    const mask = nextMask();
    const header = frameHeader(opcode, payload.length, mask);
    // The writer's memory is not ours to change. The payload lies where words of memory begin.
    const memory = Buffer.allocUnsafeSlow(HEADER_ROOM + payload.length);
    const frame = memory.subarray(HEADER_ROOM - header.length);
    header.copy(frame);
    maskInto(memory.subarray(HEADER_ROOM), payload, mask);
    return this.connection.write(frame, () => giveBack(memory));
  }

  #control(opcode: number, payload: Buffer): void {
    if (!this.#sentClose && this.connection.writable) this.#send(opcode, payload);
  }

  #pong(payload: Buffer): void {
    if (this.connection.writableLength > PONG_HIGH) this.#owedPong = payload;
    else this.#control(OPCODE.pong, payload);
  }

  #close(code: number): void {
    if (this.#sentClose || !this.connection.writable) return;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.#send(OPCODE.close, payload);
    this.#sentClose = true;
  }

  /** Say that this side is there (section 5.5.2); the other side answers. */
  ping(): void {
    this.#control(OPCODE.ping, Buffer.alloc(0));
  }

  override _read(): void {
    this.connection.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    if (this.#sentClose || !this.connection.writable) {
      callback(new Error("the WebSocket is closed"));
      return;
    }
    let more = true;
    const most = this.#masks ? PAYLOAD_MAX.masked : PAYLOAD_MAX.bare;
    for (let at = 0; at < chunk.length; at += most) more = this.#send(OPCODE.binary, chunk.subarray(at, at + most));
    if (more) callback();
    else this.#taken = callback;
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#close(NORMAL);
    // What still comes is read to the other side's close frame, but not for ever.
    this.#closing = setTimeout(() => this.destroy(), CLOSING_MS);
    callback();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#closing);
    if (error === null && !this.#sentClose) this.#close(GOING_AWAY);
    // A close frame that was written goes out; whoever does not take it is not waited for.
    if (this.#sentClose && this.connection.writable) {
      this.connection.end();
      const lingering = setTimeout(() => this.connection.destroy(), CLOSING_MS);
      this.connection.once("close", () => clearTimeout(lingering));
      this.connection.resume();
    } else this.connection.destroy();
    const taken = this.#taken;
    this.#taken = null;
    taken?.();
    callback(error);
  }
}

const POOL = Buffer.alloc(4_096);
let used = POOL.length;
/** Four bytes that nobody can foresee (section 5.3). */
function nextMask(): Buffer {
  if (used === POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  used += 4;
  return POOL.subarray(used - 4, used);
}
