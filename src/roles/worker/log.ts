import { createConsola } from "consola/basic";
import { systemClock } from "../../lib/clock.ts";
import { type Level, logLine } from "../log-line.ts";
import { stderrFile } from "../stderr-file.ts";
import type { Log } from "./context.ts";

/**
 * A log on standard error.
 *
 * @param file where standard error goes when the worker was started in the background; it is kept within a bound
 */
export function stderrLog(file: string | null = null): Log {
  const own = file === null ? null : stderrFile(file);
  const write = own?.write ?? ((line: string) => void process.stderr.write(line));
  const consola = createConsola({
    reporters: [{ log: ({ type, args: [message, data] }) => write(logLine(systemClock, type as Level, String(message), data)) }],
  });
  const entry =
    (level: Level) =>
    (message: string, data?: unknown): void =>
      consola[level](message, data);
  return { info: entry("info"), warn: entry("warn"), error: entry("error") };
}
