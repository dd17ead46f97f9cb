import type { SocketCarrier } from "../sockets/carrier.ts";
import { Counts, Rates } from "../sockets/quota.ts";

/** How much of what a relay-host takes on (docs/wire.md, Limits). */
export interface MeetingLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** In a minute. */
  readonly openingsPerAddress: number;
  /** In a minute. */
  readonly openingsPerKey: number;
  readonly workersPerToken: number;
  readonly joinsPerToken: number;
  readonly joinsPerRoom: number;
  readonly joinsPerKey: number;
}

/** What a refused opening costs besides its own one. */
export const REFUSED_COST = 4;

/** What is counted, everywhere in one relay-host. */
export class Limits {
  readonly connections = new Counts();
  readonly addressRates: Rates;
  readonly keyRates: Rates;
  readonly workers = new Counts();
  readonly #joins = new Counts();

  constructor(
    readonly max: MeetingLimits,
    now: () => number,
  ) {
    this.addressRates = new Rates(max.openingsPerAddress, now);
    this.keyRates = new Rates(max.openingsPerKey, now);
  }

  /** Count a connection by an address; it is no longer when it is closed. */
  countConnection(carrier: SocketCarrier, addressKey: string): void {
    carrier.countedBy = addressKey;
    this.connections.add(addressKey);
  }

  /** Count a desktop that comes; null where there are as many as there may be, else the way to take it back. */
  join(token: number, room: string, key: string): (() => void) | null {
    const { joinsPerToken, joinsPerRoom, joinsPerKey } = this.max;
    const counted = [
      [`token ${token}`, joinsPerToken],
      [`room ${room}`, joinsPerRoom],
      [`key ${key}`, joinsPerKey],
    ] as const;
    if (counted.some(([of, most]) => this.#joins.of(of) >= most)) return null;
    for (const [of] of counted) this.#joins.add(of);
    return () => {
      for (const [of] of counted) this.#joins.remove(of);
    };
  }
}
