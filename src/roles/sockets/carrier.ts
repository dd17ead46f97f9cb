import type { Socket } from "bun";
import { giveBack } from "../../lib/system/give-back.ts";
import { WaitingBytes } from "./waiting-bytes.ts";

/** A source is not read while more than this of it waits. */
export const HIGH = 64 * 1024;
/** It is read again when no more than this waits. */
export const LOW = 16 * 1024;

/** Who gets what a carrier brings. */
export interface CarrierSink {
  /** Empty as soon as this returns: what is kept of it is copied. */
  data(chunk: Buffer): void;
  /** No more than LOW waits any longer. */
  drain(): void;
  /** The other side has said everything. */
  end(): void;
  /** It is over; the last that is told, exactly once. `broken`: not as the other side, or we, meant it. */
  close(broken: boolean): void;
}

/** A stream of bytes in both directions, as a relay-host needs it: what waits is counted, and what comes can be held back. */
export interface Carrier {
  sink: CarrierSink;
  /** Bytes that were written and not yet taken by the system. */
  readonly waiting: number;
  /** Never refused; whoever writes looks at `waiting`. What waits is a copy. Nothing happens after `end`. */
  write(bytes: Buffer): void;
  pause(): void;
  resume(): void;
  /** Say, after what waits, that this was everything. */
  end(): void;
  /** Break it off at once, so that the other side cannot take it for an end. */
  destroy(): void;
}

/** The sink of a connection that nobody listens to any more. */
export const DEAF: CarrierSink = { data: () => undefined, drain: () => undefined, end: () => undefined, close: () => undefined };

/** TCP or TLS, on a socket of Bun's. See docs/adr/0011. */
export class SocketCarrier implements Carrier {
  sink: CarrierSink = DEAF;
  /** The address by which it is counted; null: not at all. */
  countedBy: string | null = null;
  #queue: WaitingBytes | null = null;
  #ending = false;
  #ended = false;
  #over = false;
  #broken = false;

  constructor(private readonly socket: Socket<unknown>) {}

  get waiting(): number {
    return this.#queue?.length ?? 0;
  }

  write(bytes: Buffer): void {
    if (this.#over || this.#ending || bytes.length === 0) return;
    const taken = this.waiting > 0 ? 0 : Math.max(0, this.socket.write(bytes));
    if (taken === bytes.length) return;
    this.#queue ??= new WaitingBytes();
    this.#queue.push(bytes.subarray(taken));
  }

  /** Bytes came. They would wait for the collector, and come faster than it does. */
  came(chunk: Buffer): void {
    this.sink.data(chunk);
    giveBack(chunk);
  }

  /** The socket takes more. */
  flush(): void {
    const before = this.waiting;
    this.#queue?.drain((bytes) => Math.max(0, this.socket.write(bytes)));
    if (this.#ending && this.waiting === 0) this.#shutdown();
    if (before > LOW && this.waiting <= LOW) this.sink.drain();
  }

  #shutdown(): void {
    if (!this.#over) this.socket.shutdown();
  }

  pause(): void {
    if (!this.#over) this.socket.pause();
  }

  resume(): void {
    if (!this.#over) this.socket.resume();
  }

  end(): void {
    if (this.#over || this.#ending) return;
    this.#ending = true;
    if (this.waiting === 0) this.#shutdown();
  }

  destroy(): void {
    if (this.#over) return;
    this.#broken = true;
    this.socket.terminate();
    this.closed(false);
  }

  /** The socket has seen the other side's end. */
  ended(): void {
    if (this.#ended || this.#over) return;
    this.#ended = true;
    this.sink.end();
  }

  /** The socket is closed. */
  closed(broken: boolean): void {
    if (this.#over) return;
    // Where both sides have said everything, the socket tells the second end only by closing.
    if (!broken && !this.#broken) this.ended();
    this.#over = true;
    this.#queue?.clear();
    this.sink.close(broken || this.#broken || !this.#ended);
  }
}
