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
  readonly workersPerAddress: number;
  readonly joinsPerToken: number;
  readonly joinsPerAddress: number;
  readonly joinsPerRoom: number;
  readonly joinsPerKey: number;
}

/** What a refused opening costs besides its own one. */
export const REFUSED_COST = 4;

/** How often in a minute a desktop that its worker has never let in may come to one room, from one address; and what it costs besides when it is not let in. */
const STRANGERS_PER_MINUTE = 12;
const KEPT_OUT_COST = 10;
/** How often in a minute a worker is asked: about strangers, and about others. With its pings that is less than it takes in 10 s, also when all come at once. */
const ASKED_OF_STRANGERS = 60;
const ASKED_OF_OTHERS = 90;

/** What is counted, everywhere in one relay-host. */
export class Limits {
  readonly connections = new Counts();
  readonly addressRates: Rates;
  readonly keyRates: Rates;
  readonly #workers = new Counts();
  readonly #joins = new Counts();
  readonly #strangers: Rates;
  readonly #asked: { readonly strangers: Rates; readonly others: Rates };

  constructor(
    readonly max: MeetingLimits,
    now: () => number,
  ) {
    this.addressRates = new Rates(max.openingsPerAddress, now);
    this.keyRates = new Rates(max.openingsPerKey, now);
    this.#strangers = new Rates(STRANGERS_PER_MINUTE, now);
    this.#asked = { strangers: new Rates(ASKED_OF_STRANGERS, now), others: new Rates(ASKED_OF_OTHERS, now) };
  }

  /** Count a connection by an address; it is no longer when it is closed. */
  countConnection(carrier: SocketCarrier, addressKey: string): void {
    carrier.countedBy = addressKey;
    this.connections.add(addressKey);
  }

  /** Count a worker; null where there are as many as there may be, and it takes nobody's place, else the way to take it back. */
  worker(token: number, addressKey: string | null, supersedes: boolean): (() => void) | null {
    const { workersPerToken, workersPerAddress } = this.max;
    const bounds: Bound[] = [[`token ${token}`, workersPerToken]];
    if (addressKey !== null) bounds.push([`address ${addressKey}`, workersPerAddress]);
    return count(this.#workers, bounds, supersedes);
  }

  /** Count a desktop that comes; null where there are as many as there may be, else the way to take it back. */
  join(token: number, room: string, key: string, addressKey: string | null): (() => void) | null {
    const { joinsPerToken, joinsPerRoom, joinsPerKey, joinsPerAddress } = this.max;
    const bounds: Bound[] = [
      [`token ${token}`, joinsPerToken],
      [`room ${room}`, joinsPerRoom],
      [`key ${key}`, joinsPerKey],
    ];
    if (addressKey !== null) bounds.push([`address ${addressKey}`, joinsPerAddress]);
    return count(this.#joins, bounds, false);
  }

  /** A stranger comes to a room: milliseconds until it may; 0: now. */
  stranger(room: string, addressKey: string | null): number {
    if (addressKey === null) return 0;
    const here = `${room} ${addressKey}`;
    return this.#strangers.take(here) ? 0 : Math.max(1, this.#strangers.wait(here));
  }

  /** How much of its share of a room's strangers an address has left: who knocks seldom, and is let in, has most. */
  standing(room: string, addressKey: string | null): number {
    return addressKey === null ? STRANGERS_PER_MINUTE : this.#strangers.left(`${room} ${addressKey}`);
  }

  /** A desktop from an address was not let into a room, or held it up. */
  keptOut(room: string, addressKey: string | null): void {
    if (addressKey === null) return;
    this.addressRates.fine(addressKey, REFUSED_COST);
    this.#strangers.fine(`${room} ${addressKey}`, KEPT_OUT_COST);
  }

  /** Whether the worker of a room may be asked about one more desktop. */
  ask(room: string, stranger: boolean): boolean {
    return this.#asked[stranger ? "strangers" : "others"].take(room);
  }
}

/** What is counted, and how many there may be. */
type Bound = readonly [of: string, most: number];

/** @param beyond whether it is counted even where there are as many as there may be */
function count(counts: Counts, bounds: readonly Bound[], beyond: boolean): (() => void) | null {
  if (!beyond && bounds.some(([of, most]) => counts.of(of) >= most)) return null;
  for (const [of] of bounds) counts.add(of);
  return () => {
    for (const [of] of bounds) counts.remove(of);
  };
}
