import type { Clock } from "../../lib/waiting/clock.ts";
import type { SocketCarrier } from "../sockets/carrier.ts";
import { type ListenAddress, type Listener, listen } from "../sockets/listener.ts";
import { addressKey } from "../sockets/quota.ts";
import { Strangers } from "../sockets/strangers.ts";
import { type DoorContext, type Speech, Visitor } from "./door.ts";
import { Farewells } from "./farewells.ts";
import { MEETING_TIMES, type MeetingTimes } from "./guest.ts";
import type { Journal } from "./journal.ts";
import { Limits, type MeetingLimits } from "./limits.ts";
import { type Gauges, Metrics } from "./metrics.ts";
import { Reception } from "./reception.ts";
import { Rooms } from "./rooms.ts";

export interface RelayHostOptions {
  /** Those that let somebody in. */
  readonly tokens: readonly string[];
  /** `HOST:PORT` by which it is dialed; empty: any. */
  readonly names: readonly string[];
  readonly limits: MeetingLimits;
  /** Field in which an edge says whence a request came; null: none does. */
  readonly edgeAddressHeader: string | null;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly times?: Partial<MeetingTimes>;
}

/** How a listener is reached. */
export interface Entrance {
  readonly kind: "tls" | "ws" | "tcp";
  readonly address: ListenAddress;
  /** PEM, where the kind is `tls`. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

const SPEECH: Readonly<Record<Entrance["kind"], Speech>> = { tls: "either", ws: "http", tcp: "stream" };
/** How often is looked after those who are silent, in milliseconds; a tenth of what they may be, at the most. */
const LOOK_MS = 1_000;
/** A joined pair is ended once nothing passed for so long, and at the latest after the second. */
const QUIET_MS = 250;
const DRAIN_MS = 10_000;
/** Over how long those who are sent away spread their return. */
const SPREAD_MS = 2_000;
/** What was dismissed last has so long to hear it. */
const FAREWELL_MS = 200;

/** A relay-host: joins connections that come to it, and keeps nothing. */
export class RelayHost {
  readonly #metrics = new Metrics();
  readonly #limits: Limits;
  readonly #strangers = new Strangers();
  readonly #farewells: Farewells;
  readonly #rooms: Rooms;
  readonly #reception: Reception;
  readonly #door: DoorContext;
  readonly #listeners: Listener[] = [];
  readonly #look: ReturnType<typeof setInterval>;
  readonly #times: MeetingTimes;
  #connections = 0;
  #draining = false;

  constructor(private readonly options: RelayHostOptions) {
    const { clock, journal, tokens, names } = options;
    const now = (): number => clock.monotonic();
    this.#times = { ...MEETING_TIMES, ...options.times };
    this.#limits = new Limits(options.limits, now);
    const context = { times: this.#times, limits: this.#limits, metrics: this.#metrics, journal, now };
    this.#rooms = new Rooms(context);
    this.#farewells = new Farewells(this.#times.farewell, now);
    const farewells = this.#farewells;
    this.#reception = new Reception({ ...context, tokens, names, rooms: this.#rooms, farewells });
    this.#door = {
      front: { tokens, draining: () => this.#draining, metrics: () => this.#metrics.text(this.gauges()) },
      limits: this.#limits,
      reception: this.#reception,
      strangers: this.#strangers,
      farewells,
      now,
    };
    const { opening, ping, idle } = this.#times;
    const everyMs = Math.min(LOOK_MS, opening / 10, ping / 10, idle / 10);
    let lookedAt = now();
    let excused = false;
    this.#look = setInterval(() => {
      const at = now();
      // Held up ourselves: what they have said meanwhile waits, and is read before the next look.
      excused = !excused && at - lookedAt > 2 * everyMs;
      lookedAt = at;
      if (!excused) this.#lookAfter();
    }, everyMs);
  }

  /** End those whose time is over. */
  #lookAfter(): void {
    this.#strangers.endBefore(this.options.clock.monotonic() - this.#times.opening);
    this.#farewells.look();
    this.#rooms.look();
  }

  /** Listen, too. @throws RelayError configuration_error */
  open({ kind, address, tls }: Entrance): ListenAddress {
    const listener = listen({
      address,
      tls,
      onConnection: (carrier, peer) => this.#take(carrier, peer, kind),
      onFault: (error) => this.options.journal.often("fault", { error: (error.stack ?? error.message).slice(0, 2_000) }, "warn"),
    });
    this.#listeners.push(listener);
    this.options.journal.info("listening", { kind, host: listener.address.host, port: listener.address.port });
    return listener.address;
  }

  /** How to be told of the end of a connection; null where it is one too many. */
  #take(carrier: SocketCarrier, peer: string, kind: Entrance["kind"]): (() => void) | null {
    // Behind an edge every connection comes from it. To the other listeners comes whoever likes, and says what he likes.
    const edgeAddressHeader = kind === "ws" ? (this.options.edgeAddressHeader?.toLowerCase() ?? null) : null;
    const key = edgeAddressHeader === null ? addressKey(peer) : null;
    const { max, addressRates, connections } = this.#limits;
    if (this.#draining || this.#connections >= max.connections) return null;
    if (key !== null && (connections.of(key) >= max.connectionsPerAddress || !addressRates.take(key))) return null;
    this.#connections++;
    this.#metrics.add("connections_total");
    if (key !== null) this.#limits.countConnection(carrier, key);
    new Visitor(carrier, { address: peer, edgeAddressHeader }, key, SPEECH[kind], this.#door);
    return () => {
      this.#connections--;
      if (carrier.countedBy !== null) connections.remove(carrier.countedBy);
    };
  }

  gauges(): Gauges {
    return {
      connections: this.#connections,
      strangers: this.#strangers.size,
      workers: this.#rooms.workers,
      waiting: this.#rooms.waiting,
      joins: this.#rooms.splices.size,
      held_bytes: [...this.#rooms.splices].reduce((sum, { held }) => sum + held, 0),
      draining: this.#draining ? 1 : 0,
    };
  }

  /** Take nobody any more, send away who waits, and end each joined pair when it is quiet. Resolves when all are gone. */
  async drain(): Promise<void> {
    const { journal, clock } = this.options;
    if (this.#draining) return;
    this.#draining = true;
    for (const listener of this.#listeners) listener.stop();
    const { workers, waiting, joins } = this.gauges();
    journal.info("draining", { workers, waiting, joins });
    this.#reception.drain();
    this.#rooms.dismissAll(SPREAD_MS);
    const begun = clock.monotonic();
    while (this.#rooms.splices.size > 0 && clock.monotonic() - begun < DRAIN_MS) {
      for (const splice of this.#rooms.splices) if (splice.quietFor() >= QUIET_MS) splice.end();
      await Bun.sleep(20);
    }
    for (const splice of this.#rooms.splices) splice.destroy();
    await Bun.sleep(FAREWELL_MS);
    this.close();
    journal.info("stopped");
  }

  /** End at once. */
  close(): void {
    clearInterval(this.#look);
    for (const listener of this.#listeners) listener.stop();
    this.#strangers.endBefore(Number.POSITIVE_INFINITY);
    this.#farewells.endAll();
    this.#rooms.destroyAll();
  }
}
