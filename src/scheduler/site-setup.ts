import { behindSetup } from "../lib/system/setup-text.ts";
import { lastWords, type RunSiteCommand, siteEnvironment } from "./site-command.ts";

const DEADLINE_MS = 30_000;
/** Comes before the variables, and in no output that is text. */
const BEGINNING = "\0\0";

/**
 * What a cluster's setup text makes of some variables, as far as a site's commands get them: `module load slurm`, or `. $SGE_ROOT/default/common/settings.sh`.
 *
 * @returns the environment, or in words why there is none
 */
export async function environmentBehind(
  setup: string,
  variables: Readonly<Record<string, string>>,
  run: RunSiteCommand,
): Promise<Record<string, string> | string> {
  const end = await run({ ...behindSetup(setup, ["/bin/sh", "-c", "printf '\\0\\0'; exec env -0"], variables), deadlineMs: DEADLINE_MS });
  const from = end.kind === "missing" ? -1 : end.stdout.indexOf(BEGINNING);
  if (end.kind !== "ended" || end.code !== 0 || end.cut || from < 0) return lastWords(end);
  const lines = end.stdout.slice(from + BEGINNING.length).split("\0");
  const pairs = lines
    .filter((line) => line.includes("="))
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return siteEnvironment(Object.fromEntries(pairs));
}
