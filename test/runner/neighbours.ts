/** What a test file says of the files that run at the same time. */
export interface Neighbours {
  /** Nothing else may run. */
  readonly alone: boolean;
  /** What only one file at a time can have. */
  readonly takes: readonly string[];
}

/** A line of its own: what is marked, and the reason. */
const MARK = /^\/\/ @(alone|takes)\b[ \t]*(.*)$/gm;

/**
 * Read the marks of a test file, each a line of its own: `// @alone REASON` where it stands no neighbour, `// @takes NAME REASON` where it needs something that
 * the machine has once.
 *
 * @throws Error where a mark gives no reason
 */
export function neighboursOf(file: string, text: string): Neighbours {
  const takes: string[] = [];
  let alone = false;
  for (const [, kind, rest] of text.matchAll(MARK)) {
    const [, name, reason] = kind === "alone" ? [null, "", rest!] : (/^(\S*)\s*(.*)$/.exec(rest!) ?? []);
    if (reason === undefined || reason.trim() === "") throw new Error(`${file} says @${kind}, and not why`);
    if (kind === "alone") alone = true;
    else takes.push(name!);
  }
  return { alone, takes };
}

/** A file that is to run, and what it says of others. */
export interface Planned {
  readonly file: string;
  readonly neighbours: Neighbours;
}

/**
 * Run files, so many at a time: first those that take something, which others wait for, then in the order given, at last one by one those that stand no
 * neighbour. No two that take the same run at once.
 */
export async function runBeside(files: readonly Planned[], lanes: number, run: (file: string) => Promise<void>): Promise<void> {
  const social = files.filter(({ neighbours }) => !neighbours.alone);
  const waiting = [...social.filter(takesSomething), ...social.filter((planned) => !takesSomething(planned))];
  const running = new Map<Planned, Promise<void>>();
  const isFree = ({ neighbours }: Planned): boolean =>
    ![...running.keys()].some((other) => other.neighbours.takes.some((name) => neighbours.takes.includes(name)));
  while (waiting.length > 0 || running.size > 0) {
    const next = running.size < lanes ? waiting.findIndex(isFree) : -1;
    if (next === -1) await Promise.race(running.values());
    else {
      const [planned] = waiting.splice(next, 1) as [Planned];
      running.set(
        planned,
        run(planned.file).finally(() => running.delete(planned)),
      );
    }
  }
  for (const { file, neighbours } of files) if (neighbours.alone) await run(file);
}

const takesSomething = ({ neighbours }: Planned): boolean => neighbours.takes.length > 0;
