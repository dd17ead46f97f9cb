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

/** NO_VAL of slurm/slurm.h. */
const NO_NUMBER = "4294967294";

/** Whether a row is about a job that has a number: a cluster of a federation may keep one without for a job that another one has started. */
export const hasNumber = ({ raw }: { readonly raw: string }): boolean => raw !== NO_NUMBER;
