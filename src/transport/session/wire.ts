import { EventEmitter } from "node:events";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { giveBack } from "../../lib/system/give-back.ts";

/** The software version that both sides name (RFC 4253, section 4.2: no minus sign). */
export const IDENTIFICATION = "ClioRelay";

/** How long the other side may take to see our good-bye before the stream is destroyed, in milliseconds. */
const LINGER_MS = 1_000;

/** Nothing that is said before the session is open is as long; whoever asks, and does not listen, is not waited for. */
const UNHEARD_MAX = 256 * 1024;

/** The part of a stream's inside that ssh2 looks at to learn whether it may write. */
interface ReadableInside {
  readonly ended: boolean;
}

/**
 * What ssh2 asks of a socket, around any Duplex. It counts bytes, says `drain` whenever less is pending than before, and ends in one way whatever
 * the Duplex does: once `end` or `error` has come, the Duplex is destroyed and `close` follows, exactly once. (A Duplex that allows half-open
 * streams, or that never emits `close`, would leave ssh2 waiting.)
 */
export class Wire extends EventEmitter {
  bytesIn = 0;
  bytesOut = 0;
  /** What was written in this turn; it goes out as one. */
  #collected: Buffer[] = [];
  #collectedBytes = 0;
  /** Whether the Duplex leaves what was read, and what was written, to us alone. */
  readonly #exclusive: boolean;
  #established = false;
  #closed = false;
  #lingering: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly duplex: Duplex,
    /** Sees every chunk before ssh2 does. */
    private readonly onChunk: (chunk: Buffer) => void = () => undefined,
  ) {
    super();
    this.#exclusive = duplex instanceof Socket || (duplex as { readonly exclusive?: boolean }).exclusive === true;
    // Each channel listens.
    this.setMaxListeners(0);
    duplex.pause();
    duplex.on("data", (chunk: Buffer) => {
      this.bytesIn += chunk.length;
      this.onChunk(chunk);
      this.emit("data", chunk);
      // Decrypted into memory of its own.
      if (this.#established && this.#exclusive) giveBack(chunk);
    });
    duplex.on("end", () => {
      this.emit("end");
      this.destroy();
    });
    duplex.on("close", () => this.destroy());
    // For as long as the Duplex lives: a late error of a destroyed socket has nobody else to hear it.
    duplex.on("error", (error) => {
      if (!this.#closed) this.emit("error", error);
      this.destroy();
    });
  }

  get readable(): boolean {
    return !this.#closed && this.duplex.readable;
  }

  get writable(): boolean {
    return !this.#closed && this.duplex.writable;
  }

  get _readableState(): ReadableInside {
    return { ended: this.#closed || (this.duplex as unknown as { _readableState: ReadableInside })._readableState.ended };
  }

  /** Bytes that were written and not yet taken by the Duplex's other side. */
  get pending(): number {
    return this.#collectedBytes + this.duplex.writableLength;
  }

  /** The session is open: from here on ssh2 keeps nothing of what it has read or written. Before, it does (RFC 4253, section 8: the hash of both sides' first messages). */
  established(): void {
    this.#established = true;
  }

  /** ssh2 writes each packet in three parts: two more calls of the system, and at worst two more packets on the network. */
  write(chunk: Buffer): boolean {
    this.bytesOut += chunk.length;
    if (this.#collected.push(chunk) === 1) queueMicrotask(() => this.#flush());
    this.#collectedBytes += chunk.length;
    return this.pending < this.duplex.writableHighWaterMark;
  }

  #flush(): void {
    const [parts, bytes] = [this.#collected, this.#collectedBytes];
    this.#collected = [];
    this.#collectedBytes = 0;
    if (bytes === 0 || this.#closed || !this.duplex.writable) return;
    if (!this.#established && this.duplex.writableLength + bytes > UNHEARD_MAX) {
      this.emit("error", new Error("the other side does not take what is said to it"));
      this.destroy();
      return;
    }
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts, bytes);
    if (this.#established && parts.length > 1) for (const part of parts) giveBack(part);
    const mine = this.#exclusive && parts.length > 1;
    this.duplex.write(whole, () => {
      if (mine) giveBack(whole);
      // After each, whatever the Duplex's own `drain` is about: what made a source wait may have been collected here.
      this.emit("drain");
    });
  }

  pause(): this {
    this.duplex.pause();
    return this;
  }

  resume(): this {
    this.duplex.resume();
    return this;
  }

  /** Let what was written go out, but not for ever. */
  end(): this {
    if (this.#closed || this.#lingering !== undefined) return this;
    this.#flush();
    this.duplex.end();
    this.#lingering = setTimeout(() => this.destroy(), LINGER_MS);
    return this;
  }

  destroy(): this {
    if (this.#closed) return this;
    this.#closed = true;
    clearTimeout(this.#lingering);
    this.duplex.destroy();
    this.emit("close");
    return this;
  }
}
