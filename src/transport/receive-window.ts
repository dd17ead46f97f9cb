import type { Duplex } from "node:stream";

/** How much the other side may send ahead of a reader, and who wants to know how long it takes to use what it is given. */
export interface Flow {
  /** Bytes that may be under way, or wait to be read; it may change at any time. */
  readonly size: number;
  /** Told how many milliseconds passed from giving leave to send until the first byte that used it: the path, and whatever stood in a queue. */
  turned?(ms: number): void;
}

/** What a channel starts with: RFC 4254, section 5.1. */
export const FIRST_WINDOW = 256 * 1024;
/** For answers that nobody looks after: pages, events, a log that is followed. */
const ORDINARY: Flow = { size: 1024 * 1024 };
/** Leave is given in parts of the size: each costs a packet. */
const PARTS = 4;

/** Leave that was given: to send what lies behind so many bytes, and when. */
interface Leave {
  readonly from: number;
  readonly at: number;
}

/**
 * The receiving window of one channel (RFC 4254, section 5.2), sized by whoever reads. Leave is given for what has been read, so that a reader that stops
 * stops the other side.
 */
export class ReceiveWindow {
  #flow: Flow = ORDINARY;
  /** Bytes that the other side has had leave for, that have come, and that have been read. */
  #allowed = FIRST_WINDOW;
  #came = 0;
  #read = 0;
  #leaves: Leave[] = [];

  /** @param give lets the other side send so many bytes more */
  constructor(
    private readonly give: (bytes: number) => void,
    private readonly monotonic: () => number = () => performance.now(),
  ) {}

  /** Size the window by this, until something else does; null: as for anything. */
  follow(flow: Flow | null): void {
    this.#leaves = [];
    this.#flow = flow ?? ORDINARY;
  }

  /** The reader stops for a while: what comes afterwards says nothing about the path. */
  paused(): void {
    this.#leaves = [];
  }

  /** Bytes have come. @returns false where the other side had no leave to send them */
  came(bytes: number): boolean {
    this.#came += bytes;
    return this.#came <= this.#allowed;
  }

  /** Bytes have been read. */
  read(bytes: number): void {
    this.#read += bytes;
    this.#timeTurns();
    const { size } = this.#flow;
    const lack = this.#read + size - this.#allowed;
    if (lack < size / PARTS) return;
    if (this.#flow.turned !== undefined) this.#leaves.push({ from: this.#allowed, at: this.monotonic() });
    this.#allowed += lack;
    this.give(lack);
  }

  #timeTurns(): void {
    while (this.#leaves.length > 0 && this.#leaves[0]!.from < this.#read) this.#flow.turned?.(this.monotonic() - this.#leaves.shift()!.at);
  }
}

const windows = new WeakMap<Duplex, ReceiveWindow>();

/** The window of a channel's stream is ours to size. */
export function setWindow(stream: Duplex, window: ReceiveWindow): void {
  windows.set(stream, window);
}

/** The receiving window of a stream; undefined where it is somebody else's. */
export const windowOf = (stream: Duplex): ReceiveWindow | undefined => windows.get(stream);
