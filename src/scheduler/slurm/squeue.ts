import { isEnd } from "../phases.ts";
import type { Row } from "../rows.ts";
import { count, words } from "../status.ts";
import { fieldsOf } from "./fields.ts";
import { phaseOf } from "./states.ts";
import { instant, NOTHING, seconds } from "./values.ts";

/** squeue(1), `--format`: these letters mean the same in every release from 20.11 to 25.11. */
const LETTERS = ["A", "i", "T", "r", "P", "q", "a", "u", "D", "C", "m", "N", "V", "S", "e", "M", "l", "j"] as const;

export type SqueueChoice =
  | { readonly ids: readonly string[] }
  | { readonly name: string }
  /** Everybody's. */
  | "all";

/** All states, hidden partitions and the clusters of a federation included. */
export function squeueCommand(choice: SqueueChoice, cluster: string | null, delimiter: string): readonly [string, ...string[]] {
  const format = LETTERS.map((letter) => `%${letter}`).join(delimiter);
  const where = cluster === null ? ["--federation"] : [`--clusters=${cluster}`];
  return ["squeue", "--noheader", "--all", "--states=all", ...where, ...chosen(choice), `--format=${format}`];
}

function chosen(choice: SqueueChoice): string[] {
  if (choice === "all") return [];
  if ("name" in choice) return [`--name=${choice.name}`];
  // It asks for one id alone in another way, and fails where that is unknown; of several it leaves out those that it does not know.
  const ids = choice.ids.length === 1 ? [choice.ids[0]!, choice.ids[0]!] : choice.ids;
  return [`--jobs=${ids.join(",")}`];
}

/** What squeue printed. Null where it has another form. */
export function readSqueue(text: string, delimiter: string): Row[] | null {
  return fieldsOf(text, delimiter, LETTERS.length)?.map(readRow) ?? null;
}

function readRow(fields: readonly string[]): Row {
  const of = (letter: (typeof LETTERS)[number]): string => fields[LETTERS.indexOf(letter)]!;
  const state = of("T");
  const phase = phaseOf(state);
  const ended = isEnd(phase);
  const submitted = instant(of("V"));
  return {
    raw: of("A").trim(),
    shown: of("i").trim(),
    name: of("j"),
    phase,
    answers: {
      phase,
      raw_state: words(state),
      reason: words(of("r"), NOTHING),
      name: words(of("j"), NOTHING),
      partition: words(of("P"), NOTHING),
      qos: words(of("q"), NOTHING),
      account: words(of("a"), NOTHING),
      user: words(of("u"), NOTHING),
      nodes: words(of("N"), NOTHING) ?? words(of("D")),
      cpus: count(of("C")),
      memory: words(of("m"), [...NOTHING, "0"]),
      submit_time: submitted,
      // While it waits, or runs, these are what the scheduler expects.
      start_time: phase === "pending" ? null : instant(of("S")),
      end_time: ended ? instant(of("e")) : null,
      elapsed_seconds: seconds(of("M")),
      time_limit_seconds: seconds(of("l")),
    },
  };
}
