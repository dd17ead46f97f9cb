import { duration, type Reader } from "../values.ts";

const LONGEST_SECONDS = 366 * 86_400;

/** How long a job may run, in seconds. */
export const timeLimit: Reader<number> = {
  ...duration,
  form: `${duration.form}, and at most 366d`,
  read(given) {
    const seconds = duration.read(given);
    return seconds === undefined || seconds > LONGEST_SECONDS ? undefined : seconds;
  },
};
