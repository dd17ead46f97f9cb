import { inspect } from "node:util";
import { type Clock, timestamp } from "../lib/clock.ts";

export type Level = "info" | "warn" | "error";

const LINE_MAX = 8 * 1024;

/** One entry of a log: when, how bad, what. Further lines are indented, so that an entry can be told from the next. */
export function logLine(clock: Clock, level: Level, message: string, data?: unknown): string {
  const whole = data === undefined ? message : `${message}\n${data instanceof Error ? (data.stack ?? data.message) : inspect(data)}`;
  return `${timestamp(clock)} ${level} ${whole.replaceAll("\n", "\n  ").slice(0, LINE_MAX)}\n`;
}
