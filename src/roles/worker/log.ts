import { createConsola } from "consola/basic";
import { LossyOutput } from "../../lib/text/lossy-output.ts";
import { systemClock } from "../../lib/waiting/clock.ts";
import { type Level, logLine, omittedText } from "../log-line.ts";
import { stderrFile } from "../stderr-file.ts";
import type { Log } from "./context.ts";

const STDERR = 2;

/**
 * A log on standard error.
 *
 * @param file where standard error goes when the worker was started in the background; it is kept within a bound
 */
export function stderrLog(file: string | null = null): Log {
  const own = file === null ? null : stderrFile(file);
  const lossy = new LossyOutput(STDERR, (count) => logLine(systemClock, "warn", omittedText(count)));
  const write = (line: string): void => (own ?? lossy).write(line);
  const consola = createConsola({
    reporters: [{ log: ({ type, args: [message, data] }) => write(logLine(systemClock, type as Level, String(message), data)) }],
  });
  const entry =
    (level: Level) =>
    (message: string, data?: unknown): void =>
      consola[level](message, data);
  return { info: entry("info"), warn: entry("warn"), error: entry("error") };
}
