import { RelayError } from "../../../domain/errors.ts";
import type { Clock } from "../../../lib/waiting/clock.ts";

/** How many refusals are nothing to think about. */
const FREE = 500;
/** Then how long after a refusal the same is not asked for again: at first, and at most; milliseconds. */
const FIRST_MS = 1_000;
const CAP_MS = 60_000;
/** ssh ends at 10,000 channels, in later versions at 16,384 (CHANNELS_MAX_CHANNELS); some are for those that are open. */
const LAST = 9_500;

/**
 * The refused channels of one ssh. In proxy mode it keeps a note of each for as long as it lives, ends when there are too many, and ends, too, when the client that asked for them
 * goes away: nothing gets rid of one. So what was refused lately is not asked for again, once there were many.
 */
export class Refusals {
  #count = 0;
  #until = 0;
  #pauseMs = FIRST_MS;
  readonly #known = new Map<string, RelayError>();

  constructor(private readonly clock: Clock) {}

  /** @param target null: what is never answered from memory @throws RelayError channel_refused when it is not to be asked for now, or never again */
  check(target: string | null): void {
    if (this.#count >= LAST) throw exhausted();
    const refusal = target === null ? undefined : this.#known.get(target);
    if (refusal !== undefined && this.clock.monotonic() < this.#until) throw refusal;
  }

  refused(target: string | null, error: RelayError): void {
    this.#count++;
    if (this.#count < FREE || target === null) return;
    this.#known.set(target, error);
    this.#until = this.clock.monotonic() + this.#pauseMs;
    this.#pauseMs = Math.min(CAP_MS, this.#pauseMs * 2);
  }

  opened(target: string | null): void {
    if (target !== null && this.#known.delete(target)) this.#pauseMs = FIRST_MS;
  }

  /** Something was done on the host: what was missing may be there. */
  askAgain(): void {
    this.#until = 0;
  }
}

const exhausted = (): RelayError =>
  new RelayError(
    "channel_refused",
    `so many channels were refused on this connection (${LAST}) that ssh would end at the next ones`,
    { reason: "refused_too_often" },
    "what is open goes on; clio-relay disconnect and connect make a new connection",
  );
