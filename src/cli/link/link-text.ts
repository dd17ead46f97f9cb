import type { LinkStatus } from "../../api/desktop/link-views.ts";
import type { CliIo } from "../io.ts";
import { oneLine } from "../print/safe-text.ts";
import { styleFor } from "../print/style.ts";
import { printTable } from "../print/table.ts";

/** Milliseconds as a person reads them. */
export const roundTripText = (ms: number | null): string | null => (ms === null ? null : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`);

/** `NAME is up: worker 1.2.3, 12 ms` */
export function linkSentence({ cluster, state, worker_version, round_trip_ms, detail }: LinkStatus): string {
  const facts = [worker_version === null ? null : `worker ${worker_version}`, roundTripText(round_trip_ms), detail].filter(
    (one) => one !== null,
  );
  return oneLine(`${cluster} is ${state.replaceAll("_", " ")}${facts.length === 0 ? "" : `: ${facts.join(", ")}`}`);
}

/**
 * A table of links. What there is to say of each is the last cell of its row; on a terminal it stands below the table instead, where nothing of it is cut.
 *
 * @param columns titles, each with what a link has there
 */
export async function printLinks(
  { stdout, env }: Pick<CliIo, "stdout" | "env">,
  links: readonly LinkStatus[],
  columns: Readonly<Record<string, (link: LinkStatus) => string | number | null>>,
): Promise<void> {
  const all = stdout.isTerminal ? columns : { ...columns, DETAIL: ({ detail }: LinkStatus) => detail };
  const cells = Object.values(all);
  await printTable(
    stdout,
    styleFor(stdout, env),
    Object.keys(all),
    links.map((link) => cells.map((cell) => cell(link))),
  );
  if (!stdout.isTerminal) return;
  for (const { cluster, detail } of links) if (detail !== null) await stdout.write(`${cluster}: ${oneLine(detail)}\n`);
}
