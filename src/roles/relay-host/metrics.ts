/** A number that only grows, by one label's value. */
class Counter {
  readonly #values = new Map<string, number>();

  constructor(private readonly label: string | null) {}

  add(value = "", by = 1): void {
    this.#values.set(value, (this.#values.get(value) ?? 0) + by);
  }

  lines(name: string): string[] {
    if (this.#values.size === 0 && this.label === null) return [`${name} 0`];
    return [...this.#values].map(([value, count]) =>
      this.label === null ? `${name} ${count}` : `${name}{${this.label}="${value}"} ${count}`,
    );
  }
}

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

/** What /metrics shows, in the text format of Prometheus, version 0.0.4. */
export class Metrics {
  readonly #counters = Object.fromEntries(Object.entries(COUNTERS).map(([name, [, label]]) => [name, new Counter(label)])) as Record<
    keyof typeof COUNTERS,
    Counter
  >;

  add(name: keyof typeof COUNTERS, value?: string, by?: number): void {
    this.#counters[name].add(value, by);
  }

  text(gauges: Gauges): string {
    const lines: string[] = [];
    const put = (name: string, help: string, type: string, values: readonly string[]): void => {
      lines.push(`# HELP ${name} ${help}.`, `# TYPE ${name} ${type}`, ...values);
    };
    for (const name of Object.keys(COUNTERS) as (keyof typeof COUNTERS)[]) {
      const full = `clio_relay_host_${name}`;
      put(full, COUNTERS[name][0], "counter", this.#counters[name].lines(full));
    }
    for (const name of Object.keys(GAUGES) as (keyof typeof GAUGES)[]) {
      const full = `clio_relay_host_${name}`;
      put(full, GAUGES[name], "gauge", [`${full} ${gauges[name]}`]);
    }
    put("process_resident_memory_bytes", "Resident memory", "gauge", [`process_resident_memory_bytes ${process.memoryUsage.rss()}`]);
    return `${lines.join("\n")}\n`;
  }
}
