/** One sample of a document in Prometheus' text format. */
export interface ReadSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\+Inf|-Inf|NaN|-?[0-9.]+(?:[eE][+-]?[0-9]+)?)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;

function labelsOf(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ""; ) {
    const found = LABEL.exec(rest);
    if (found === null) throw new Error(`labels that are none: ${line}`);
    const [whole, name, value] = found;
    if (name! in labels) throw new Error(`a label twice: ${line}`);
    labels[name!] = value!.replace(/\\(["\\n])/g, (_, one: string) => (one === "n" ? "\n" : one));
    rest = rest.slice(whole.length);
  }
  return labels;
}

const numberOf = (text: string): number =>
  text === "+Inf" ? Number.POSITIVE_INFINITY : text === "-Inf" ? Number.NEGATIVE_INFINITY : Number(text);

/** Reads a document strictly (Exposition formats, 0.0.4): each family has HELP and TYPE once, and its samples behind them; no series is there twice; a histogram adds up. */
export function readExposition(text: string): ReadSample[] {
  if (!text.endsWith("\n")) throw new Error("no line feed at the end");
  const types = new Map<string, string>();
  const samples: ReadSample[] = [];
  const series = new Set<string>();
  let family = "";
  let helped = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const help = new RegExp(`^# HELP (${NAME}) \\S`).exec(line);
    const type = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`).exec(line);
    if (help !== null) helped = help[1]!;
    else if (type !== null) {
      family = type[1]!;
      if (helped !== family || types.has(family)) throw new Error(`TYPE without HELP, or twice: ${line}`);
      types.set(family, type[2]!);
    } else {
      const found = SAMPLE.exec(line);
      if (found === null) throw new Error(`no sample: ${line}`);
      const [, name, labels = "", value] = found;
      const base = types.get(family) === "histogram" ? name!.replace(/_(?:bucket|sum|count)$/, "") : name!;
      if (base !== family) throw new Error(`a sample outside of its family: ${line}`);
      const sample = { name: name!, labels: labelsOf(labels, line), value: numberOf(value!) };
      const key = `${name}${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (series.has(key)) throw new Error(`a series twice: ${line}`);
      series.add(key);
      samples.push(sample);
    }
  }
  for (const [name, type] of types) if (type === "histogram") checkHistogram(name, samples);
  return samples;
}

function checkHistogram(name: string, samples: readonly ReadSample[]): void {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const count = samples.find((sample) => sample.name === `${name}_count`)?.value;
  const bounds = buckets.map(({ labels }) => numberOf(labels["le"] ?? ""));
  const ascending = (numbers: readonly number[]): boolean => numbers.every((number, index) => index === 0 || number >= numbers[index - 1]!);
  if (!ascending(bounds) || !ascending(buckets.map(({ value }) => value))) throw new Error(`buckets of ${name} are not in order`);
  if (bounds.at(-1) !== Number.POSITIVE_INFINITY || buckets.at(-1)?.value !== count) throw new Error(`${name} does not add up`);
}

/** The value of one series; undefined where there is none. */
export const sampleValue = (
  samples: readonly ReadSample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined =>
  samples.find((one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value))?.value;
