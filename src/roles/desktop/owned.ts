import { DEAF, type SocketCarrier } from "../sockets/carrier.ts";
import { connectUnix } from "../sockets/handlers.ts";
import { Splice } from "../sockets/splice.ts";
import { Exchanges } from "./exchanges.ts";

/** Descriptors of a connection that is joined with the server, and of one that is set aside. */
export const JOINED_DESCRIPTORS = 3;
export const ASIDE_DESCRIPTORS = 1;

export interface Ownership {
  /** The Unix socket of the server. */
  readonly socket: string;
  readonly now: () => number;
  /** How long what a client wants may take that has said that it was all, in milliseconds. */
  readonly halfClosedMs: number;
  readonly onFault: (error: Error) => void;
  /** It is between two requests, or no longer. */
  readonly onResting: (one: Owned, resting: boolean) => void;
  /** It was set aside and has to be joined again: whether that may be; where not, this answers. */
  readonly mayWake: (one: Owned) => boolean;
  /** Told once. */
  readonly onOver: (one: Owned) => void;
}

/**
 * A connection that has shown the token: joined with one of its own to the server, or, between two requests, set aside without it. The server asks for the token again with each request, so
 * that it makes no difference to which connection of the server's a request comes.
 */
export class Owned {
  #splice: Splice | null = null;
  #aside = false;
  #resting = false;
  #over = false;
  #quietSince: number;
  #exchanges = new Exchanges();

  constructor(
    readonly carrier: SocketCarrier,
    /** Whence it comes. */
    readonly address: string,
    private readonly options: Ownership,
  ) {
    this.#quietSince = options.now();
  }

  get descriptors(): number {
    return this.#aside ? ASIDE_DESCRIPTORS : JOINED_DESCRIPTORS;
  }

  /** Bytes that came and have not been passed on to the system. */
  get held(): number {
    return this.#splice?.held ?? 0;
  }

  /** Milliseconds since something moved. */
  quietFor(): number {
    return this.#splice?.quietFor() ?? this.options.now() - this.#quietSince;
  }

  /** Make one connection of two, with back-pressure; the end of either is the end of both, but where it is set aside. */
  async join(bytes: Buffer): Promise<void> {
    const { carrier } = this;
    let ended = false;
    this.#aside = false;
    this.#exchanges = new Exchanges();
    carrier.pause();
    let held = Buffer.from(bytes);
    // A socket that is paused may have had something to tell before.
    carrier.sink = {
      ...DEAF,
      data: (chunk) => {
        held = Buffer.concat([held, chunk]);
      },
      end: () => {
        ended = true;
      },
      close: () => this.#end(),
    };
    try {
      const inner = await connectUnix(this.options.socket, this.options.onFault);
      if (this.#over) return inner.destroy();
      const { halfClosedMs: keepsEndMs } = this.options;
      this.#splice = new Splice([carrier, inner], this.options.now, () => this.#end(), { keepsEndMs, heard: this.#heard });
      this.#exchanges.asked(held);
      inner.write(held);
      if (ended) carrier.sink.end();
      carrier.resume();
    } catch {
      carrier.destroy();
    }
  }

  readonly #heard = (side: 0 | 1, chunk: Buffer): void => {
    if (side === 0) this.#exchanges.asked(chunk);
    else this.#exchanges.answered(chunk);
    if (this.#exchanges.resting === this.#resting) return;
    this.#resting = !this.#resting;
    this.options.onResting(this, this.#resting);
  };

  /** Give back what the server holds of it, until it is asked something again. False where something is under way. */
  setAside(): boolean {
    const splice = this.#splice;
    if (splice === null || !this.#resting || !splice.leave()) return false;
    this.#quietSince = this.options.now() - splice.quietFor();
    this.#splice = null;
    this.#aside = true;
    this.#resting = false;
    const { carrier } = this;
    carrier.sink = { ...DEAF, data: (chunk) => this.#wake(chunk), end: () => carrier.destroy(), close: () => this.#end() };
    return true;
  }

  #wake(chunk: Buffer): void {
    if (this.options.mayWake(this)) void this.join(chunk);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.options.onOver(this);
  }

  destroy(): void {
    if (this.#splice === null) this.carrier.destroy();
    else this.#splice.destroy();
  }

  /** End it where it was set aside: nothing is under way. */
  endAside(): void {
    if (this.#aside) this.carrier.destroy();
  }
}
