import type { Carrier } from "./carrier.ts";

/** Above so many bytes that are held for all together, sources take turns. */
export const ENOUGH = 8 * 1024 * 1024;
/** Above so many, each waits so many times as long. */
const MUCH = 1.5 * ENOUGH;
const PATIENCE = 4;
/** What one read may bring; more than the second at a time is no talk. */
const READ_MAX = 512 * 1024;
const TALK_MAX = 16 * 1024;
/** How long a source waits for its turn at the most; how long one whose bytes did not have to wait lately; how often is looked; milliseconds. */
const LATEST_MS = 1_000;
const OTHERS_LATEST_MS = 100;
const LOOK_MS = 5;
/** What was within this many milliseconds was lately. */
const LATELY_MS = 10_000;

/** A source, and when it is read. On the monotonic clock, in milliseconds. */
export interface Seat {
  readonly source: Carrier;
  /** When it brought much at a time last, or came. */
  muchAt: number;
  /** Since when what it brought last had to wait, and how long that was; as long as it is held, null. */
  heldAt: number;
  heldFor: number | null;
  /** Since when it waits for its turn. */
  waitsSince: number;
}

/**
 * When sources are read. What each brings at once is large, and most of it may have to be held for the other side: as soon as much is held, none is read any more that brought much at a time
 * lately. Those whose bytes had to wait go on one after the other when less is held, or when they have waited as long as their bytes had to. All others go on at once when less is held, and
 * wait for a moment at the most. So sides that take little cost the others time in proportion, and do not stop them.
 */
export class Turns {
  readonly #seats = new Set<Seat>();
  /** Who waits for a turn, in the order in which they go on. */
  readonly #queue = new Set<Seat>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /**
   * @param held bytes that are held at present for sides that take them
   * @param now the monotonic clock
   */
  constructor(
    private readonly held: () => number,
    private readonly now: () => number,
  ) {}

  /** A source has come, and is read. */
  enter(source: Carrier): Seat {
    const at = this.now();
    const seat: Seat = { source, muchAt: at, heldAt: Number.NEGATIVE_INFINITY, heldFor: 0, waitsSince: at };
    this.#seats.add(seat);
    return seat;
  }

  /** A source has brought so many bytes at a time. */
  came(seat: Seat, bytes: number, at: number): void {
    if (bytes > TALK_MAX) seat.muchAt = at;
  }

  /** A source is over. */
  leave(seat: Seat): void {
    this.#seats.delete(seat);
    this.#queue.delete(seat);
  }

  /** A source was paused: what it brought has to wait. What came with the same read may come behind a pause. */
  heldBack(seat: Seat): void {
    if (seat.heldFor === null) return;
    const at = this.now();
    seat.heldFor = null;
    seat.heldAt = at;
    this.#queue.delete(seat);
    if (this.held() < ENOUGH) return;
    // Whatever the others have to say would be read in this same round.
    for (const one of this.#seats) {
      if (one.heldFor === null || this.#queue.has(one) || at - one.muchAt > LATELY_MS) continue;
      one.source.pause();
      this.#wait(one, at);
    }
  }

  /** Read a source again whose bytes have been taken, now or soon. */
  next(seat: Seat): void {
    if (seat.heldFor !== null) return;
    const at = this.now();
    seat.heldFor = at - seat.heldAt;
    if (this.#queue.size === 0 && this.held() < ENOUGH) seat.source.resume();
    else this.#wait(seat, at);
  }

  #wait(seat: Seat, at: number): void {
    if (this.#queue.has(seat)) return;
    seat.waitsSince = at;
    this.#queue.add(seat);
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
  }

  #look(): void {
    const at = this.now();
    let room = ENOUGH - this.held();
    const lately = ({ heldAt }: Seat): boolean => at - heldAt <= LATELY_MS;
    const latest = (seat: Seat): number => {
      const patience = lately(seat) ? (seat.heldFor ?? 0) : OTHERS_LATEST_MS;
      return Math.min(room < ENOUGH - MUCH ? PATIENCE * patience : patience, LATEST_MS);
    };
    const turn = (seat: Seat, brings: number): void => {
      if (room <= 0 && at - seat.waitsSince < latest(seat)) return;
      room -= brings;
      this.#queue.delete(seat);
      seat.source.resume();
    };
    for (const seat of this.#queue) if (!lately(seat)) turn(seat, 0);
    for (const seat of this.#queue) if (lately(seat)) turn(seat, READ_MAX);
    if (this.#queue.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
