import { EXIT, errorRule, isRelayError, RelayError } from "../../domain/errors.ts";
import { Backoff } from "../../lib/waiting/backoff.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { sleep } from "../../lib/waiting/sleep.ts";
import type { Output } from "../io.ts";
import { oneLine } from "../print/safe-text.ts";

const FIRST_MS = 100;
const CAP_MS = 3_000;
/** How long an outage is left to pass by itself, as a restart does, before somebody is told what ends it; milliseconds. */
const TOLD_AFTER_MS = 2_000;

/** Whether a failure is one of the way, which a later try may find open. */
export const isOutage = (error: unknown): boolean => {
  if (!(error instanceof RelayError)) return false;
  const { retryable, http, exit } = errorRule(error.code);
  // What a redial may fail with on its way is a failure of the way, too: of the proxy, the edge or the frps. A channel is refused by the other end of one that carries.
  return retryable && (http === 503 || (exit === EXIT.linkDown && error.code !== "channel_refused"));
};

/** What is known of the way: it carries, it says nothing, or it broke and is tried again. */
export type Way = "up" | "silent" | "down";

const BACK: Readonly<Record<Exclude<Way, "up">, string>> = { silent: "it answers again", down: "connected again" };

/** Comes back for as long as it takes, says once per outage that it does, and says when it is over. */
export class Reconnect {
  readonly #backoff = new Backoff(FIRST_MS, CAP_MS);
  #way: Way = "up";
  #lastSign: number;
  /** Whether anything ever came through. */
  #carried = false;
  /** Whether it was said, of this outage, what a person has to do. */
  #told = false;
  /** When this outage began, of `clock.monotonic()`. */
  #since = 0;

  constructor(
    private readonly stderr: Pick<Output, "write">,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
    /** Told of every change. */
    private readonly onWay: (way: Way) => void = () => undefined,
  ) {
    this.#lastSign = clock.monotonic();
  }

  /** Milliseconds since something came through; 0 while a broken connection is being taken up again. */
  get silentMs(): number {
    return this.#way === "down" ? 0 : this.clock.monotonic() - this.#lastSign;
  }

  /** Something came through. */
  async alive(): Promise<void> {
    this.#carried = true;
    this.#backoff.reset();
    this.#lastSign = this.clock.monotonic();
    this.#told = false;
    if (this.#way === "up") return;
    const words = BACK[this.#way];
    this.#turn("up");
    await this.stderr.write(`notice: ${words}\n`);
  }

  /** Whether a failure is waited through. A link that broke comes back when somebody sees to it; one that was never there is said at once. */
  waitsThrough(error: unknown): boolean {
    return isOutage(error) || (isRelayError(error, "authorization_required") && this.#carried);
  }

  #turn(way: Way): void {
    this.#way = way;
    this.onWay(way);
  }

  /** What was written to a log and is no longer there is passed over, and said. @param from @param to byte offsets in the job's log */
  async passedOver(stream: string, from: number, to: number): Promise<void> {
    await this.stderr.write(`notice: ${to - from} bytes of ${stream}, from byte ${from} on, are no longer there\n`);
  }

  /** The connection stands, and whoever is asked over it gives no answer. @param who as it is said */
  async silent(who: string): Promise<void> {
    if (this.#way !== "up") return;
    const seconds = Math.round(this.silentMs / 1_000);
    this.#turn("silent");
    await this.stderr.write(`notice: no sign of life from ${who} for ${seconds} s; still waiting\n`);
  }

  /**
   * Wait before the next try.
   *
   * @param error what ended the last one; null when the other side closed in order, which is said only when it is not back at once
   * @throws the error itself when trying again is of no use; the signal's reason when it is aborted
   */
  async wait(error: unknown): Promise<void> {
    this.signal.throwIfAborted();
    if (error !== null) {
      if (!this.waitsThrough(error) || !(error instanceof RelayError)) throw error;
      await this.#say(error);
    }
    await sleep(this.#backoff.next(), this.signal);
  }

  /** Once an outage that it is one, and once what a person has to do about it. */
  async #say(error: RelayError): Promise<void> {
    const waitsForPerson = isRelayError(error, "authorization_required");
    const what = oneLine(error.message);
    const hint = error.hint === undefined ? "" : `: ${oneLine(error.hint)}`;
    if (this.#way !== "down") {
      this.#turn("down");
      this.#since = this.clock.monotonic();
      this.#told = waitsForPerson && hint !== "";
      await this.stderr.write(`notice: ${what}; trying again until it is back${this.#told ? hint : ""}\n`);
      return;
    }
    // At first it was only that the connection broke.
    const lasts = waitsForPerson || this.clock.monotonic() - this.#since >= TOLD_AFTER_MS;
    if (this.#told || hint === "" || !lasts) return;
    this.#told = true;
    await this.stderr.write(`notice: ${waitsForPerson ? "it does not come back by itself" : what}${hint}\n`);
  }

  /** Do something until it works. */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await work();
        await this.alive();
        return result;
      } catch (error) {
        await this.wait(error);
      }
    }
  }
}
