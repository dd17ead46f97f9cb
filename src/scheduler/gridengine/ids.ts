import type { NativeJob } from "../provider.ts";

/** A job's number, or an element of an array: `12`, `12.3`. */
const NATIVE = /^(\d{1,10})(?:\.(\d{1,10}))?$/;

/** A job's id as a person writes it; null for what is none. */
export function readNative(text: string): NativeJob | null {
  const match = NATIVE.exec(text.trim());
  return match === null || /^0+$/.test(match[1]!) ? null : { id: match[0], cluster: null };
}

/** The one line of what `qsub -terse` prints that is an id. An array's has its elements behind it: `12.1-8:2`. */
export const terseId = (line: string): string | null => /^(\d{1,10})(?:\.\d{1,10}-\d{1,10}(?::\d{1,10})?)?\s*$/.exec(line)?.[1] ?? null;

/** An id as rows have it (elements.ts). */
export const rowId = (id: string): string => id.replace(".", "_");
