import { createConsola } from "consola/basic";
import { systemClock, timestamp } from "../../lib/clock.ts";
import { stderrFile } from "../stderr-file.ts";
import type { Log } from "./context.ts";

/**
 * A log on standard error.
 *
 * @param file where standard error goes when the worker was started in the background; it is kept within a bound
 */
export function stderrLog(file: string | null = null): Log {
  const own = file === null ? null : stderrFile(file);
  const stream = own === null ? process.stderr : ({ write: own.write } as unknown as NodeJS.WriteStream);
  const consola = createConsola({ stdout: stream, stderr: stream });
  const write = (level: "info" | "warn" | "error") => (message: string, data?: unknown) => {
    const line = `${timestamp(systemClock)} ${message}`;
    if (data === undefined) consola[level](line);
    else consola[level](line, data);
  };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}
