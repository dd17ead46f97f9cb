import { type Carrier, DEAF, HIGH } from "./carrier.ts";
import type { Seat, Turns } from "./turns.ts";

/** How long one direction may go on after the other has ended, in milliseconds. */
const LINGER_MS = 10_000;
/** What has waited for longer is for a side that takes next to nothing. */
const SLOW_MS = 10_000;
/** How long what is for nobody is read over, in milliseconds. */
const READ_OVER_MS = 30_000;

export interface SpliceOptions {
  /**
   * The first is a client of HTTP, the second its server. The end of what the first says is kept from the second, who would take it for the end of the connection: that one has so long
   * for what is due, in milliseconds. Once it has answered, who says that it was all is gone. What the second has said by its own end may take as long as it is taken. What the first
   * still says by then is read over for some time: a reset would take the answer away from whoever sends all of a request before it reads (RFC 9112, section 9.6).
   */
  readonly keepsEndMs?: number;
  /** Says when a source is read; always, unless what it brought has to wait, where it is left out. */
  readonly turns?: Turns;
  /** Hears what a side has said, before the other one does. */
  readonly heard?: (side: 0 | 1, chunk: Buffer) => void;
}

/** Two carriers that are joined: whatever one brings goes to the other, until both are over. */
export class Splice {
  /** Bytes from the first to the second, and back. */
  readonly bytes: [number, number] = [0, 0];
  #movedAt: number;
  /** What was held when that was looked at last. */
  #heldThen = 0;
  readonly #ended: [boolean, boolean] = [false, false];
  #closed = 0;
  /** Since when each side is not read, since the other one has not taken what it brought; null: it is read. */
  readonly #heldBackSince: [number | null, number | null] = [null, null];
  readonly #seats: [Seat | null, Seat | null] = [null, null];
  /** Who has said something last. */
  #last: 0 | 1 = 0;
  /** Until when what the first says is read over; null while the second is there. */
  #overUntil: number | null = null;
  #linger: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param sides two carriers whose control messages are done
   * @param now the monotonic clock
   * @param onOver told once, when both are closed
   */
  constructor(
    private readonly sides: readonly [Carrier, Carrier],
    private readonly now: () => number,
    private readonly onOver: (splice: Splice) => void,
    private readonly options: SpliceOptions = {},
  ) {
    this.#movedAt = now();
    this.#attach(0);
    this.#attach(1);
  }

  /** Bytes that came and have not been passed on to the system. */
  get held(): number {
    return this.sides[0].waiting + this.sides[1].waiting;
  }

  /** The same, without what has waited for long. */
  get heldShortly(): number {
    const at = this.now();
    const of = (side: 0 | 1): number => {
      const since = this.#heldBackSince[side];
      return since === null || at - since > SLOW_MS ? 0 : this.sides[side === 0 ? 1 : 0].waiting;
    };
    return of(0) + of(1);
  }

  /** Milliseconds since something moved. Bytes that wait are looked at, too: who takes them slowly takes them. */
  quietFor(): number {
    const { held } = this;
    if (held !== this.#heldThen) {
      this.#heldThen = held;
      this.#movedAt = this.now();
    }
    return this.now() - this.#movedAt;
  }

  #attach(side: 0 | 1): void {
    const [from, to] = [this.sides[side], this.sides[side === 0 ? 1 : 0]];
    const { turns } = this.options;
    this.#seats[side] = turns?.enter(from) ?? null;
    from.sink = {
      data: (chunk) => {
        if (side === 0 && this.#overUntil !== null) {
          if (this.now() > this.#overUntil) from.destroy();
          return;
        }
        this.bytes[side] += chunk.length;
        this.#last = side;
        const at = this.now();
        const seat = this.#seats[side];
        if (seat !== null) turns?.came(seat, chunk.length, at);
        this.#movedAt = at;
        this.options.heard?.(side, chunk);
        to.write(chunk);
        if (to.waiting > HIGH) {
          from.pause();
          this.#heldBackSince[side] = at;
          if (seat !== null) turns?.heldBack(seat);
        }
      },
      // Of what this side takes.
      drain: () => {
        this.#movedAt = this.now();
        this.#heldBackSince[side === 0 ? 1 : 0] = null;
        const seat = this.#seats[side === 0 ? 1 : 0];
        if (seat === null) to.resume();
        else turns?.next(seat);
      },
      end: () => this.#end(side, to),
      close: (broken) => {
        if (side === 1 && this.#keeps(0)) this.#serverGone();
        else if (broken || !this.#ended[side] || this.#keeps(side)) to.destroy();
        else this.#end(side, to);
        const seat = this.#seats[side];
        if (seat !== null) turns?.leave(seat);
        if (++this.#closed < 2) return;
        clearTimeout(this.#linger);
        this.onOver(this);
      },
    };
  }

  #end(side: 0 | 1, to: Carrier): void {
    if (this.#ended[side]) return;
    this.#ended[side] = true;
    if (this.#keeps(0) && (side === 1 || this.#overUntil !== null)) {
      this.#serverGone();
      return;
    }
    const { keepsEndMs } = this.options;
    if (this.#keeps(side)) {
      if (this.#last === 1) this.destroy();
      else this.#lingers(keepsEndMs);
    } else {
      to.end();
      if (keepsEndMs === undefined) this.#lingers();
    }
  }

  /** The server has said everything, or is gone, and nothing more is for it. */
  #serverGone(): void {
    const [client, server] = this.sides;
    this.#overUntil ??= this.now() + READ_OVER_MS;
    server.destroy();
    client.end();
    client.resume();
  }

  #keeps(side: 0 | 1): boolean {
    return side === 0 && this.options.keepsEndMs !== undefined;
  }

  #lingers(ms: number = LINGER_MS): void {
    this.#linger ??= setTimeout(() => this.destroy(), ms);
  }

  /** End both directions, after what waits. */
  end(): void {
    for (const side of this.sides) side.end();
    this.#lingers();
  }

  destroy(): void {
    for (const side of this.sides) side.destroy();
  }

  /** Let the first go as it is, and end the second. False, and nothing is done, where bytes wait or a side has said its end. `onOver` is not told. */
  leave(): boolean {
    if (this.held > 0 || this.#closed > 0 || this.#overUntil !== null || this.#ended.includes(true)) return false;
    clearTimeout(this.#linger);
    for (const seat of this.#seats) if (seat !== null) this.options.turns?.leave(seat);
    for (const side of this.sides) side.sink = DEAF;
    this.sides[1].destroy();
    return true;
  }
}
