import { FrameError, FrameReader, type FrameSink, frameHeader, OPCODE, PAYLOAD_MAX } from "../../transport/outbound/websocket/frames.ts";
import { type Carrier, type CarrierSink, DEAF, LOW } from "../sockets/carrier.ts";

/** docs/wire.md, Carriers. */
const SEND_MAX = PAYLOAD_MAX.bare;
const RECEIVE_MAX = 256 * 1024;
/** One frame; whoever writes it has copied what waits. */
const SCRATCH = Buffer.allocUnsafeSlow(64 * 1024);
/** How long the other side may take to answer our close frame, in milliseconds. */
const CLOSING_MS = 10_000;
/** RFC 6455, section 7.4.1. */
const NORMAL = 1_000;
/** While more than this waits, in bytes, pings are not answered; the last one is as soon as less does (RFC 6455, section 5.5.3). */
const PONG_HIGH = LOW;

/** The bytes of the binary messages of a WebSocket, on a carrier whose upgrade is done. It has no half-close: an end is one for both directions. */
export class WebSocketCarrier implements Carrier {
  sink: CarrierSink = DEAF;
  readonly #reader: FrameReader;
  #sentClose = false;
  #gotClose = false;
  /** What came was no frame; nothing more is read, so that the other side learns why. */
  #violated = false;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #owedPong: Buffer | null = null;

  constructor(private readonly inner: Carrier) {
    this.#reader = new FrameReader({ masked: true, maxPayload: RECEIVE_MAX }, new Frames(this));
    inner.sink = new Inside(this);
  }

  get waiting(): number {
    return this.inner.waiting;
  }

  /** Bytes of the connection came. */
  read(chunk: Buffer): void {
    if (this.#violated) return;
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#violated = true;
      this.#sendClose(error.closeCode);
      this.inner.end();
      this.#giveUpLater();
    }
  }

  /** A ping came. */
  pong(payload: Buffer): void {
    if (this.#sentClose) return;
    if (this.inner.waiting > PONG_HIGH) this.#owedPong = payload;
    else this.#send(OPCODE.pong, payload);
  }

  /** The connection takes more. */
  drained(): void {
    const owed = this.#owedPong;
    this.#owedPong = null;
    if (owed !== null) this.pong(owed);
    this.sink.drain();
  }

  /** A close frame came. */
  closed(): void {
    this.#gotClose = true;
    this.sink.end();
    this.#sendClose(NORMAL);
    this.inner.end();
    this.#giveUpLater();
  }

  #send(opcode: number, payload: Buffer): void {
    const header = frameHeader(opcode, payload.length, null);
    header.copy(SCRATCH);
    payload.copy(SCRATCH, header.length);
    this.inner.write(SCRATCH.subarray(0, header.length + payload.length));
  }

  #sendClose(code: number): void {
    if (this.#sentClose) return;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.#send(OPCODE.close, payload);
    this.#sentClose = true;
  }

  /** The connection has come to its end; without a close frame it may be a cut. */
  ended(): void {
    if (!this.#gotClose) this.inner.destroy();
  }

  /** The connection is closed. */
  gone(broken: boolean): void {
    clearTimeout(this.#closing);
    this.sink.close(broken || !this.#gotClose);
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

/** What the connection brings. */
class Inside implements CarrierSink {
  constructor(private readonly owner: WebSocketCarrier) {}

  data(chunk: Buffer): void {
    this.owner.read(chunk);
  }

  drain(): void {
    this.owner.drained();
  }

  end(): void {
    this.owner.ended();
  }

  close(broken: boolean): void {
    this.owner.gone(broken);
  }
}

/** What is in its frames. */
class Frames implements FrameSink {
  constructor(private readonly owner: WebSocketCarrier) {}

  data(part: Buffer): void {
    this.owner.sink.data(part);
  }

  ping(payload: Buffer): void {
    this.owner.pong(payload);
  }

  pong(): void {}

  close(): void {
    this.owner.closed();
  }
}
