import { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";

/** The software version that both sides name (RFC 4253, section 4.2: no minus sign). */
export const IDENTIFICATION = "ClioRelay";

/** How long the other side may take to see our good-bye before the stream is destroyed, in milliseconds. */
const LINGER_MS = 1_000;

/** The part of a stream's inside that ssh2 looks at to learn whether it may write. */
interface ReadableInside {
  readonly ended: boolean;
}

/**
 * What ssh2 asks of a socket, around any Duplex. It counts bytes, and it ends in one way whatever the Duplex does: once `end` or `error` has
 * come, the Duplex is destroyed and `close` follows, exactly once. (A Duplex that allows half-open streams, or that never emits `close`, would
 * leave ssh2 waiting.)
 */
export class Wire extends EventEmitter {
  bytesIn = 0;
  bytesOut = 0;
  #closed = false;
  #lingering: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly duplex: Duplex,
    /** Sees every chunk before ssh2 does. */
    private readonly onChunk: (chunk: Buffer) => void = () => undefined,
  ) {
    super();
    // Each channel listens.
    this.setMaxListeners(0);
    duplex.pause();
    duplex.on("data", (chunk: Buffer) => {
      this.bytesIn += chunk.length;
      this.onChunk(chunk);
      this.emit("data", chunk);
    });
    duplex.on("end", () => {
      this.emit("end");
      this.destroy();
    });
    duplex.on("drain", () => this.emit("drain"));
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
    return this.duplex.writableLength;
  }

  write(chunk: Buffer): boolean {
    this.bytesOut += chunk.length;
    return this.duplex.write(chunk);
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
