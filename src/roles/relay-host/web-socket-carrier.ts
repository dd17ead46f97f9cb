import { FrameError, FrameReader, frameHeader, OPCODE } from "../../transport/outbound/websocket/frames.ts";
import { type Carrier, type CarrierSink, DEAF } from "./carrier.ts";

/** docs/wire.md, Carriers. */
const SEND_MAX = 64 * 1024;
const RECEIVE_MAX = 256 * 1024;
/** How long the other side may take to answer our close frame, in milliseconds. */
const CLOSING_MS = 2_000;
/** RFC 6455, section 7.4.1. */
const NORMAL = 1_000;
/** Pings that are answered while this much waits, in bytes; beyond, the other side asks and does not listen. */
const PONG_HIGH = 16 * 1024;

/** The bytes of the binary messages of a WebSocket, on a carrier whose upgrade is done. It has no half-close: an end is one for both directions. */
export class WebSocketCarrier implements Carrier {
  sink: CarrierSink = DEAF;
  readonly #reader: FrameReader;
  #sentClose = false;
  #gotClose = false;
  #closing: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly inner: Carrier) {
    this.#reader = new FrameReader(
      { masked: true, maxPayload: RECEIVE_MAX },
      {
        data: (part) => this.sink.data(part),
        ping: (payload) => this.#pong(payload),
        pong: () => undefined,
        close: () => this.#closed(),
      },
    );
    inner.sink = {
      data: (chunk) => this.#read(chunk),
      drain: () => this.sink.drain(),
      // Without a close frame the end may be a cut.
      end: () => {
        if (!this.#gotClose) inner.destroy();
      },
      close: (broken) => {
        clearTimeout(this.#closing);
        this.sink.close(broken || !this.#gotClose);
      },
    };
  }

  get waiting(): number {
    return this.inner.waiting;
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#sendClose(error.closeCode);
      this.inner.destroy();
    }
  }

  #pong(payload: Buffer): void {
    if (this.#sentClose) return;
    if (this.inner.waiting > PONG_HIGH) this.inner.destroy();
    else this.#send(OPCODE.pong, payload);
  }

  #closed(): void {
    this.#gotClose = true;
    this.sink.end();
    this.#sendClose(NORMAL);
    this.inner.end();
    this.#giveUpLater();
  }

  #send(opcode: number, payload: Buffer): void {
    const header = frameHeader(opcode, payload.length, null);
    this.inner.write(Buffer.concat([header, payload], header.length + payload.length));
  }

  #sendClose(code: number): void {
    if (this.#sentClose) return;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.#send(OPCODE.close, payload);
    this.#sentClose = true;
  }

  #giveUpLater(): void {
    this.#closing ??= setTimeout(() => this.inner.destroy(), CLOSING_MS);
  }

  write(bytes: Buffer): void {
    if (this.#sentClose) return;
    for (let at = 0; at < bytes.length; at += SEND_MAX) this.#send(OPCODE.binary, bytes.subarray(at, at + SEND_MAX));
  }

  pause(): void {
    this.inner.pause();
  }

  resume(): void {
    this.inner.resume();
  }

  end(): void {
    this.#sendClose(NORMAL);
    this.#giveUpLater();
    this.inner.resume();
  }

  destroy(): void {
    this.inner.destroy();
  }
}
