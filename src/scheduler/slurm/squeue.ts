import type { SchedulerPhase, SchedulerStatus } from "../../domain/scheduler.ts";
import { isEnd } from "../phases.ts";
import type { Row } from "../rows.ts";
import { count, words } from "../status.ts";
import { fieldsOf } from "./fields.ts";
import { hasNumber } from "./ids.ts";
import { phaseOf } from "./states.ts";
import { instant, NOTHING, seconds } from "./values.ts";

/** squeue(1), `--format`: these letters mean the same in every release from 20.11 to 25.11. */
const LETTERS = ["A", "i", "T", "r", "P", "q", "a", "u", "D", "C", "m", "N", "V", "S", "e", "M", "l", "j"] as const;

export type SqueueChoice =
  | { readonly ids: readonly string[] }
  | { readonly name: string }
  /** Everybody's. */
  | "all";

/** All states, hidden partitions and the clusters of a federation included, each with what it has of a job: the one that a job came from has it only as revoked where another runs it. */
export function squeueCommand(choice: SqueueChoice, cluster: string | null, delimiter: string): readonly [string, ...string[]] {
  const format = LETTERS.map((letter) => `%${letter}`).join(delimiter);
  const where = cluster === null ? ["--sibling"] : [`--clusters=${cluster}`];
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
  return (
    fieldsOf(text, delimiter, LETTERS.length)
      ?.map((fields) => new SqueueRow(fields))
      .filter(hasNumber) ?? null
  );
}

type Letter = (typeof LETTERS)[number];
const PLACES = Object.fromEntries(LETTERS.map((letter, index) => [letter, index])) as Readonly<Record<Letter, number>>;

/** A line of squeue. */
class SqueueRow implements Row {
  readonly phase: SchedulerPhase;

  constructor(private readonly fields: readonly string[]) {
    this.phase = phaseOf(this.#of("T"));
  }

  #of(letter: Letter): string {
    return this.fields[PLACES[letter]]!;
  }

  get raw(): string {
    return this.#of("A");
  }

  get shown(): string {
    return this.#of("i");
  }

  get name(): string {
    return this.#of("j");
  }

  get queue(): string {
    return `${this.#of("P")} ${this.#of("q")}`;
  }

  get submitted(): string {
    return this.#of("V");
  }

  get answers(): Partial<SchedulerStatus> {
    const { phase } = this;
    return {
      phase,
      raw_state: words(this.#of("T")),
      reason: words(this.#of("r"), NOTHING),
      name: words(this.#of("j"), NOTHING),
      partition: words(this.#of("P"), NOTHING),
      qos: words(this.#of("q"), NOTHING),
      account: words(this.#of("a"), NOTHING),
      user: words(this.#of("u"), NOTHING),
      nodes: words(this.#of("N"), NOTHING) ?? words(this.#of("D")),
      cpus: count(this.#of("C")),
      memory: words(this.#of("m"), [...NOTHING, "0"]),
      submit_time: instant(this.#of("V")),
      // While it waits, or runs, these are what the scheduler expects.
      start_time: phase === "pending" ? null : instant(this.#of("S")),
      end_time: isEnd(phase) ? instant(this.#of("e")) : null,
      elapsed_seconds: seconds(this.#of("M")),
      time_limit_seconds: seconds(this.#of("l")),
    };
  }
}
