/** How many files of a suite may have a second run: where more fail, it is not the neighbours. */
const AT_MOST = 3;

interface Judged {
  readonly file: string | null;
  readonly failed: number;
}

/**
 * Run each file that failed once more, one at a time and with nothing beside it, now that the others are through. The second verdict counts. `unsteady` has the first one of
 * each file that failed once only: its tests depend on what else the machine does, and that is to be mended. Where more than three files failed, none runs again.
 */
export async function secondRuns<T extends Judged>(
  verdicts: readonly T[],
  run: (file: string) => Promise<T>,
): Promise<{ verdicts: T[]; unsteady: T[] }> {
  const failed = verdicts.filter((verdict) => verdict.failed > 0 && verdict.file !== null);
  if (failed.length > AT_MOST) return { verdicts: [...verdicts], unsteady: [] };
  const second = new Map<T, T>();
  for (const first of failed) second.set(first, await run(first.file!));
  return {
    verdicts: verdicts.map((first) => second.get(first) ?? first),
    unsteady: failed.filter((first) => second.get(first)!.failed === 0),
  };
}
