import { inspect } from "node:util";
import { safeText } from "../lib/text/safe-text.ts";
import { type Clock, timestamp } from "../lib/waiting/clock.ts";

export type Level = "info" | "warn" | "error";

const LINE_MAX = 8 * 1024;

/** What a log says of lines that nobody took. */
export const omittedText = (count: number): string => `${count} lines were left out: nobody read what came before them`;

/** One entry of a log: when, how bad, what. Further lines are indented, so that an entry can be told from the next; what others have said commands no terminal. */
export function logLine(clock: Clock, level: Level, message: string, data?: unknown): string {
  const whole = data === undefined ? message : `${message}\n${data instanceof Error ? (data.stack ?? data.message) : inspect(data)}`;
  const shown = safeText(whole.slice(0, LINE_MAX))
    .replaceAll(/\r\n?|\n/g, "\n  ")
    .replaceAll("\t", " ");
  return `${timestamp(clock)} ${level} ${shown.slice(0, LINE_MAX)}\n`;
}
