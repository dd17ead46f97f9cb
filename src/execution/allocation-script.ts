import { FEW_THREADS } from "../lib/system/few-threads.ts";
import { CANNOT_RUN } from "./spool-records.ts";

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/**
 * What a batch script does after its directives: see that it can enter the attempt's directory and execute the relay's file, which a file server may show some
 * seconds late, and become the shim. Otherwise it says on its standard error what it cannot do, and exits with CANNOT_RUN. For sh(1) of POSIX.
 *
 * @param command the relay's executable with leading arguments, absolute
 */
export function allocationScript(command: readonly string[], directory: string): readonly string[] {
  const [executable = ""] = command;
  return [
    `relay=${quoted(executable)} attempt=${quoted(directory)}`,
    'for pause in 1 2 4; do [ -x "$relay" ] && [ -x "$attempt" ] && break; sleep "$pause"; done',
    'if [ ! -d "$attempt" ] || [ ! -x "$attempt" ]; then',
    `  echo "clio-relay: the directory of the attempt cannot be entered on $(uname -n): $attempt" >&2; exit ${CANNOT_RUN}`,
    "fi",
    'if [ ! -f "$relay" ] || [ ! -x "$relay" ]; then',
    `  echo "clio-relay: the executable of clio-relay cannot be executed on $(uname -n): $relay" >&2; exit ${CANNOT_RUN}`,
    "fi",
    "cd /",
    `export ${Object.entries(FEW_THREADS)
      .map(([name, value]) => `${name}=${quoted(value)}`)
      .join(" ")}`,
    `exec "$relay" ${[...command.slice(1), "__shim", "--allocation"].map(quoted).join(" ")} "$attempt"`,
  ];
}
