/** Edits (insert, delete, replace, swap of neighbours) between two strings: the optimal string alignment distance. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, beforeLast[j - 2]! + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}

const MAX_LENGTH = 64;

/** The known name that somebody most likely meant: a completion of what was typed, or one at most a third of its letters away; else null. */
export function nearest(typed: string, known: Iterable<string>): string | null {
  if (typed === "" || typed.length > MAX_LENGTH) return null;
  let best: string | null = null;
  let least = Math.max(1, Math.floor(typed.length / 3)) + 0.5;
  for (const name of known) {
    const away = typed.length >= 3 && name.startsWith(typed) ? 0.5 : distance(typed, name);
    if (away < least) {
      best = name;
      least = away;
    }
  }
  return best;
}
