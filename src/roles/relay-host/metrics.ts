import { Counter, Exposition } from "../../lib/text/exposition.ts";

const COUNTERS = {
  connections_total: ["Connections that were taken", null],
  openings_total: ["Openings that were proven", "role"],
  refused_total: ["Connections that were refused or closed", "code"],
  superseded_total: ["Registrations that took the place of another of the same key", null],
  joined_total: ["Pairs that were joined", null],
  bytes_total: ["Bytes of joined pairs that were passed on", "to"],
} as const satisfies Record<string, readonly [string, string | null]>;

const GAUGES = {
  connections: "Connections that are open",
  strangers: "Connections without a complete opening",
  workers: "Workers that are registered",
  waiting: "Desktops that wait for their worker",
  joins: "Pairs that are joined",
  held_bytes: "Bytes of joined pairs that wait to be passed on",
  draining: "Whether the relay-host is shutting down",
} as const;
export type Gauges = { readonly [K in keyof typeof GAUGES]: number };

/** What /metrics shows. */
export class Metrics {
  readonly #counters = Object.fromEntries(Object.entries(COUNTERS).map(([name, [, label]]) => [name, new Counter(label)])) as Record<
    keyof typeof COUNTERS,
    Counter
  >;

  add(name: keyof typeof COUNTERS, value?: string, by?: number): void {
    this.#counters[name].add(value, by);
  }

  text(gauges: Gauges): string {
    const out = new Exposition();
    for (const name of Object.keys(COUNTERS) as (keyof typeof COUNTERS)[]) {
      out.add(`clio_relay_host_${name}`, "counter", COUNTERS[name][0], this.#counters[name].samples());
    }
    for (const name of Object.keys(GAUGES) as (keyof typeof GAUGES)[]) {
      out.one(`clio_relay_host_${name}`, "gauge", GAUGES[name], gauges[name]);
    }
    return out.one("process_resident_memory_bytes", "gauge", "Resident memory", process.memoryUsage.rss()).text();
  }
}
