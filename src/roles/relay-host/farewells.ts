import { type Carrier, DEAF } from "../sockets/carrier.ts";
import { Strangers } from "../sockets/strangers.ts";

/**
 * Connections to which everything is said. Breaking one off resets it, and with that whoever reads late loses what was said last; so it stays until the other side has read that and
 * closes, or its time is over. There are as few of them as of those who have said nothing yet (docs/wire.md, Limits), and one too many ends the oldest.
 */
export class Farewells {
  readonly #all = new Strangers();

  /**
   * @param ms how long one may stay
   * @param now the monotonic clock
   */
  constructor(
    private readonly ms: number,
    private readonly now: () => number,
  ) {}

  /** Nothing more is read of it; what waits goes out, and then its end. @param addressKey by what its address is counted; null: not at all */
  bid(carrier: Carrier, addressKey: string | null): void {
    const leaving = { addressKey, since: this.now(), destroy: () => carrier.destroy() };
    carrier.sink = { ...DEAF, close: () => this.#all.remove(leaving) };
    this.#all.add(leaving);
    carrier.end();
  }

  /** End those whose time is over. */
  look(): void {
    this.#all.endBefore(this.now() - this.ms);
  }

  endAll(): void {
    this.#all.endBefore(Number.POSITIVE_INFINITY);
  }
}
