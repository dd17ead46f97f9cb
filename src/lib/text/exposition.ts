/** Labels of one sample. Values are few: each makes a series of its own. */
export type Labels = Readonly<Record<string, string>>;

/** One number with what tells it from its siblings. */
export type Sample = readonly [labels: Labels, value: number];

/** What numbers can be, as far as they are used here. */
export type SampleType = "counter" | "gauge";

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** A document in Prometheus' text format, version 0.0.4 (prometheus.io, Exposition formats). */
export class Exposition {
  readonly #lines: string[] = [];

  /** @param name with the base unit, and `_total` of what only grows. @param help one sentence without a full stop */
  add(name: string, type: SampleType, help: string, samples: readonly Sample[]): this {
    this.#head(name, type, help);
    for (const [labels, value] of samples) this.#lines.push(`${name}${braced(labels)} ${numberText(value)}`);
    return this;
  }

  one(name: string, type: SampleType, help: string, value: number | null): this {
    return this.add(name, type, help, value === null ? [] : [[{}, value]]);
  }

  histogram(name: string, help: string, { bounds, counts, sum }: Histogram): this {
    this.#head(name, "histogram", help);
    let below = 0;
    bounds.forEach((bound, index) => {
      below += counts[index]!;
      this.#lines.push(`${name}_bucket{le="${numberText(bound)}"} ${below}`);
    });
    const all = below + counts[bounds.length]!;
    this.#lines.push(`${name}_bucket{le="+Inf"} ${all}`, `${name}_sum ${numberText(sum)}`, `${name}_count ${all}`);
    return this;
  }

  #head(name: string, type: string, help: string): void {
    this.#lines.push(`# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}.`, `# TYPE ${name} ${type}`);
  }

  text(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}

function braced(labels: Labels): string {
  const pairs = Object.entries(labels);
  return pairs.length === 0 ? "" : `{${pairs.map(([name, value]) => `${name}="${escaped(value)}"`).join(",")}}`;
}

const escaped = (value: string): string => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

/** As Go's ParseFloat takes it. */
const numberText = (value: number): string =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";

/** A number that only grows, by the value of one label. */
export class Counter {
  readonly #values = new Map<string, number>();

  /** @param label null: there is one number only */
  constructor(
    private readonly label: string | null = null,
    known: readonly string[] = [],
  ) {
    // What was never counted is there as nothing, so that a rate can be taken of the first one.
    for (const value of label === null ? [""] : known) this.#values.set(value, 0);
  }

  add(value = "", by = 1): void {
    this.#values.set(value, (this.#values.get(value) ?? 0) + by);
  }

  samples(): Sample[] {
    return [...this.#values].map(([value, count]) => [this.label === null ? {} : { [this.label]: value }, count]);
  }
}

/** How often something took how long. */
export class Histogram {
  /** By the first bound that is not below the value; the last one has what is above all. */
  readonly counts: number[];
  sum = 0;

  /** @param bounds ascending, in the base unit */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > bounds[at]!) at++;
    counts[at] = counts[at]! + 1;
    this.sum += value;
  }
}
