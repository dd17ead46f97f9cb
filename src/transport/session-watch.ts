import { RelayError } from "../domain/errors.ts";
import type { Clock } from "../lib/waiting/clock.ts";
import type { Timers } from "../lib/waiting/timers.ts";
import { PULSE, Pulse, type PulseTimes } from "./link-pulse.ts";
import type { Session } from "./session/session.ts";

/** How long the other side may take where it is asked out of turn, in milliseconds. */
const ASKED_MS = 10_000;
/** How long the end of the session is waited for that was closed from here. */
const CLOSED_MS = 2_000;

/**
 * Ends a session whose other side has gone silent, whatever is under way on it: nothing has come for 30 s after it was asked for a sign of life. Anything that
 * comes is one, since an answer may have to wait behind what is being sent.
 */
export class SessionWatch {
  readonly #pulse: Pulse;
  #bytesIn = 0;

  constructor(
    private readonly session: Session,
    clock: Clock,
    timers: Timers,
    times: PulseTimes = PULSE,
  ) {
    this.#pulse = new Pulse(
      clock,
      timers,
      {
        ping: async () => void (await session.roundTrip(AbortSignal.timeout(times.droppedMs))),
        probe: () => (this.#hasSpoken() ? Promise.resolve() : Promise.reject(new Error("nothing has come"))),
        degraded: () => undefined,
        silent: () => undefined,
        dropped: () => session.close(silent(times.droppedMs)),
      },
      times,
    );
    session.closed.then(() => this.#pulse.stop()).catch(() => undefined);
  }

  #hasSpoken(): boolean {
    const { bytesIn } = this.session.stats();
    const more = bytesIn > this.#bytesIn;
    this.#bytesIn = bytesIn;
    return more;
  }

  /** Ask for a sign of life now; where none comes the session is over when this resolves. Never rejects. */
  async ask(): Promise<void> {
    this.#hasSpoken();
    try {
      await this.session.roundTrip(AbortSignal.timeout(ASKED_MS));
    } catch {
      if (this.#hasSpoken()) return;
      this.session.close(silent(ASKED_MS));
      await Promise.race([this.session.closed, Bun.sleep(CLOSED_MS)]);
    }
  }
}

const silent = (ms: number): RelayError =>
  new RelayError("link_down", `nothing has come from the other end of the connection for ${ms / 1_000} s`);
