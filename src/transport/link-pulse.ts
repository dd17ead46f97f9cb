import type { Clock } from "../lib/waiting/clock.ts";
import type { Timers } from "../lib/waiting/timers.ts";
import { SLEPT_MS, WakeWatch } from "../lib/waiting/wake.ts";

/** When the other side is asked for a sign of life, and what its silence means; milliseconds. */
export interface PulseTimes {
  /** A ping goes out this long after the last answer. */
  readonly everyMs: number;
  /** One goes out this long after the one before, whatever else is answered: it brings what is new of the worker. */
  readonly newsMs: number;
  readonly degradedMs: number;
  /** From when on requests that wait as long are given up; a little more than `degradedMs`, so that it can be known whether the path is to blame. */
  readonly silentMs: number;
  readonly droppedMs: number;
  /** How late a timer may fire, or the clocks may go apart, before the machine is taken to have slept. */
  readonly sleptMs: number;
}

export const PULSE: PulseTimes = {
  everyMs: 15_000,
  newsMs: 60_000,
  degradedMs: 10_000,
  silentMs: 12_000,
  droppedMs: 30_000,
  sleptMs: SLEPT_MS,
};

/** How often the clocks are compared, so that a wake-up is noticed soon. */
const LOOK_MS = 1_000;

export interface PulseEvents {
  /** Resolves when the worker has answered. When it rejects, it is asked again. */
  ping(): Promise<void>;
  /** Resolves when at least the other end of the session has. */
  probe(): Promise<unknown>;
  degraded(): void;
  /** Told again and again from `silentMs` on. @param pathAnswers whether at least the other end of the session does */
  silent(pathAnswers: boolean): void;
  /** Nobody is there any more. Nothing follows. */
  dropped(): void;
}

/**
 * Decides by round trips whether the other side is there. A worker that is silent is one thing, and a path that is dead another: while the other end of
 * the session answers, nothing is dropped. Both clocks are looked at: the monotonic one says how long an answer is overdue, and the wall clock, which goes on
 * while the machine sleeps, says that it did; then a ping goes out at once, and its time begins anew.
 */
export class Pulse {
  #lastAnswer: number;
  #lastAsked: number;
  /** Since when an answer of the worker is waited for; null while none is. */
  #waitingSince: number | null = null;
  /** When the other end of the session has answered, since then. */
  #pathSeen = Number.NEGATIVE_INFINITY;
  #pinging = false;
  #probing = false;
  #degraded = false;
  #over = false;
  #cancel: () => void = () => undefined;
  readonly #wake: WakeWatch;

  constructor(
    private readonly clock: Clock,
    private readonly timers: Timers,
    private readonly events: PulseEvents,
    private readonly times: PulseTimes = PULSE,
  ) {
    this.#wake = new WakeWatch(clock, times.sleptMs);
    this.#lastAnswer = clock.monotonic();
    this.#lastAsked = this.#lastAnswer;
    this.#schedule();
  }

  #schedule(): void {
    this.#cancel = this.timers.after(LOOK_MS, () => this.#look());
  }

  #look(): void {
    const now = this.clock.monotonic();
    if (this.#wake.hasSlept(LOOK_MS)) this.#ask(now, true);
    else if (this.#waitingSince !== null) this.#wait(now, this.#waitingSince);
    else if (now - this.#lastAnswer >= this.times.everyMs || now - this.#lastAsked >= this.times.newsMs) this.#ask(now, false);
    if (!this.#over) this.#schedule();
  }

  #wait(now: number, since: number): void {
    if (!this.#pinging) this.#ask(now, false);
    if (now - since < this.times.degradedMs) return;
    this.#probe();
    if (!this.#degraded) {
      this.#degraded = true;
      this.events.degraded();
      return;
    }
    if (now - since >= this.times.silentMs) this.events.silent(this.#pathSeen >= since);
    if (now - Math.max(since, this.#pathSeen) < this.times.droppedMs) return;
    this.stop();
    this.events.dropped();
  }

  #ask(now: number, anew: boolean): void {
    if (anew) this.#pathSeen = Number.NEGATIVE_INFINITY;
    this.#waitingSince = anew ? now : (this.#waitingSince ?? now);
    this.#pinging = true;
    this.#lastAsked = now;
    const asked = (): void => {
      this.#pinging = false;
    };
    this.events.ping().then(() => this.answered(), asked);
  }

  #probe(): void {
    if (this.#probing) return;
    this.#probing = true;
    const seen = (): void => {
      this.#probing = false;
      this.#pathSeen = this.clock.monotonic();
    };
    const failed = (): void => {
      this.#probing = false;
    };
    this.events.probe().then(seen, failed);
  }

  /** The worker has answered something. */
  answered(): void {
    this.#lastAnswer = this.clock.monotonic();
    this.#waitingSince = null;
    this.#pinging = false;
    this.#degraded = false;
  }

  /** Nothing is asked any more. */
  stop(): void {
    this.#over = true;
    this.#cancel();
  }
}
