import { within } from "../../lib/waiting/within.ts";
import { commandLine } from "../shim/command-line.ts";
import type { AttemptSpec } from "../spool-records.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const LAST_WORDS_MS = 250;

/** Prints a mark, which what the setup text prints does not have, and the environment that it made. */
const PRINT = 'printf %s "$1"; exec env -0';

/** The cluster's setup text ended before the program that it was for. */
export class SetupFailed extends Error {
  constructor(readonly code: number) {
    super(`the cluster's setup text ended with code ${code}, and the server was not started`);
  }
}

/**
 * The environment that a program of the attempt would have: that of its spec, and what the cluster's setup text makes of it.
 *
 * @param setupFile where that text lies; null where there is none
 * @param signal ends the text; what it has started by then is the caller's
 * @throws SetupFailed, the reason of `signal`
 */
export async function setupEnvironment(
  spec: AttemptSpec,
  setupFile: string | null,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (setupFile === null) return spec.env;
  signal.throwIfAborted();
  const mark = crypto.randomUUID();
  const line = commandLine({ ...spec, argv: ["/bin/sh", "-c", PRINT, "sh", mark] }, setupFile);
  const child = Bun.spawn([line.file, ...line.args], {
    argv0: line.argv0,
    cwd: spec.workdir,
    env: { ...spec.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    maxBuffer: MAX_BYTES,
    signal,
    killSignal: "SIGKILL",
  });
  const chunks: Uint8Array[] = [];
  const read = (async () => {
    for await (const chunk of child.stdout) chunks.push(chunk);
  })().catch(() => undefined);
  const code = await child.exited;
  // What it leaves in the background may hold its output open.
  await within(read, LAST_WORDS_MS);
  signal.throwIfAborted();
  const [, printed] = Buffer.concat(chunks).toString("utf8").split(mark);
  if (code !== 0 || printed === undefined) throw new SetupFailed(code);
  return Object.fromEntries(
    printed.split("\0").flatMap((entry) => {
      const end = entry.indexOf("=");
      return end <= 0 ? [] : [[entry.slice(0, end), entry.slice(end + 1)]];
    }),
  );
}
