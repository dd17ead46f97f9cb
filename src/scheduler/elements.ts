/** Arrays: their elements are told apart as SLURM writes them, `12_3`, and those that wait as `12_[1-4,7]`. */

/** One row's names for its job. */
export interface RowNames {
  /** Its own number. */
  readonly raw: string;
  /** The same; that of an array's element says of which one. */
  readonly shown: string;
}

/** How well a row fits an id: 3 it is it, 2 an element that waits within it, 1 one of its elements, 0 another job. */
export function fits(id: string, { raw, shown }: RowNames): 0 | 1 | 2 | 3 {
  const [array, elements] = shown.split("_", 2);
  // The last element of an array has the array's own number.
  if (shown === id || (raw === id && (elements === undefined || array !== id))) return 3;
  const [ofArray, element] = id.split("_", 2);
  if (array !== ofArray || elements === undefined) return 0;
  if (element === undefined) return 1;
  if (/^\d+$/.test(element))
    return elements.startsWith("[") && elementsOf(elements).some(([from, to, step]) => holds(Number(element), from, to, step)) ? 2 : 0;
  const wanted = elementsOf(element);
  if (!/^\d+$/.test(elements)) return 1;
  return wanted.some(([from, to, step]) => holds(Number(elements), from, to, step)) ? 1 : 0;
}

const holds = (element: number, from: number, to: number, step: number): boolean =>
  element >= from && element <= to && (element - from) % step === 0;

/** `[1-4,7,10-20:2%3]` as from, to and step. What follows `...` is not told. */
function elementsOf(text: string): (readonly [number, number, number])[] {
  const inner = text.replace(/^\[/, "").replace(/\]$/, "").replace(/%.*$/, "");
  return inner.split(",").flatMap((part) => {
    const match = /^(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?$/.exec(part);
    if (match === null) return [];
    const from = Number(match[1]);
    return [[from, Number(match[2] ?? from), Math.max(1, Number(match[3] ?? 1))] as const];
  });
}

/** How many jobs a row stands for: an array's waiting elements are one row. */
export function jobsIn({ shown }: RowNames): number {
  const elements = /_(\[.*)$/.exec(shown)?.[1];
  if (elements === undefined) return 1;
  return Math.max(
    1,
    elementsOf(elements).reduce((sum, [from, to, step]) => sum + Math.max(0, Math.floor((to - from) / step) + 1), 0),
  );
}
