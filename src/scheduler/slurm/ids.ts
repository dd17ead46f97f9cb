import type { NativeJob } from "../provider.ts";

/** A job, an element of an array, some of its elements, or a part of a heterogeneous job; behind it, in what sbatch prints, its cluster. */
const NATIVE = /^(\d{1,10}(?:_(?:\d{1,10}|\[[\d,:%-]{1,100}\])|\+\d{1,6})?)(?:;([A-Za-z0-9_.-]{1,64}))?$/;

/** A job's id as a person writes it, or as `sbatch --parsable` prints it; null for what is none. A step (`12.batch`) is none. */
export function readNative(text: string): NativeJob | null {
  const match = NATIVE.exec(text.trim());
  return match === null || /^0+$/.test(match[1]!) ? null : { id: match[1]!, cluster: match[2] ?? null };
}

/** What the commands take for it in a list: the array of some of its elements, which are told apart in the answer. */
export const listed = (id: string): string => id.replace(/_\[.*$/, "").replace(/\+.*$/, "");

/** One row's names for its job: `%A` and `%i` of squeue(1), JobIDRaw and JobID of sacct(1). */
export interface RowNames {
  readonly raw: string;
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
