import type { Flow } from "../receive-window.ts";

/** What all transfers of a link together may have under way: at first, at least and at most; bytes. */
const FIRST = 256 * 1024;
const LEAST = 64 * 1024;
const MOST = 16 * 1024 * 1024;
/** What one transfer has under way at least: a packet. */
const LEAST_EACH = 32 * 1024;
/** A turn that takes this much longer than the shortest one, or a quarter of that, means that bytes of ours stand in a queue; milliseconds. */
const QUEUE_MS = 3;
const QUEUE_SHARE = 0.25;
/** How long the shortest turn counts; then everything is let run out of the queue to see it anew. */
const SHORTEST_FOR_MS = 10_000;

/** A transfer's share of what may be under way. */
export interface Transfer extends Flow {
  /** It is over. */
  leave(): void;
}

/**
 * How much the transfers of a link may have under way, found out from how long it takes until what was allowed comes: more while it comes as soon as ever (the
 * path is long, or has room), less when it has to wait (bytes of ours fill a queue, where every short answer would stand behind them). All share it alike.
 * The thought is that of TCP Vegas (Brakmo and Peterson, 1995), at the receiver.
 */
export class TransferWindows {
  #window = FIRST;
  #shortest = Number.POSITIVE_INFINITY;
  #shortestSince = Number.NEGATIVE_INFINITY;
  /** While the queue is let run out: what the window was, and until when. */
  #drained: { readonly window: number; readonly until: number } | null = null;
  #changedAt = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(private readonly monotonic: () => number = () => performance.now()) {}

  /** What all may have under way together; bytes. */
  get window(): number {
    return this.#window;
  }

  /** A transfer begins. */
  enter(): Transfer {
    if (this.#count === 0) this.#begin();
    this.#count++;
    let inside = true;
    const share = (): number => Math.max(LEAST_EACH, Math.floor(this.#window / Math.max(1, this.#count)));
    return {
      get size() {
        return share();
      },
      turned: (ms) => this.#turned(ms),
      leave: () => {
        if (inside) this.#count--;
        inside = false;
      },
    };
  }

  #begin(): void {
    if (this.monotonic() - this.#changedAt <= SHORTEST_FOR_MS) return;
    this.#window = FIRST;
    this.#forget();
  }

  #forget(): void {
    this.#shortest = Number.POSITIVE_INFINITY;
    this.#shortestSince = this.monotonic();
  }

  #turned(ms: number): void {
    const now = this.monotonic();
    if (ms < this.#shortest) this.#shortest = ms;
    if (this.#drained !== null) {
      if (now < this.#drained.until) return;
      this.#set(this.#drained.window, now);
      this.#drained = null;
    } else if (now - this.#shortestSince > SHORTEST_FOR_MS) this.#drain(now, ms);
    // Once a turn: what was allowed before the last change says nothing about it.
    else if (now - this.#changedAt >= ms) this.#adapt(now, ms);
  }

  #adapt(now: number, ms: number): void {
    const tolerated = Math.max(QUEUE_MS, this.#shortest * QUEUE_SHARE);
    const queued = ms - this.#shortest;
    if (queued > tolerated) this.#set(this.#window * Math.max(0.5, (this.#shortest + tolerated) / ms), now);
    else if (queued < tolerated / 2) this.#set(this.#window * (1 + 0.5 * (1 - queued / tolerated)), now);
  }

  #drain(now: number, ms: number): void {
    this.#drained = { window: this.#window, until: now + 2 * ms };
    this.#forget();
    this.#set(LEAST, now);
  }

  #set(window: number, now: number): void {
    this.#window = Math.round(Math.min(MOST, Math.max(LEAST, window)));
    this.#changedAt = now;
  }
}
