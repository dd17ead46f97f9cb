import type { CheckDepth, Finding, RepairReport } from "../store.ts";
import type { Writing } from "./access.ts";
import { FINDINGS_MAX, findDamage, type Read } from "./audit.ts";
import { type Damage, toFinding } from "./checks/damage.ts";

export type Write = <T>(fn: (w: Writing) => T) => Promise<T>;

/**
 * Put right what can be derived. Goes on as long as a round brings something about: mending one thing may uncover another, and a round sees
 * only so many findings. What is left then cannot be repaired.
 */
export async function repair(read: Read, write: Write, depth: CheckDepth): Promise<RepairReport> {
  const repaired: Finding[] = [];
  const seen = new Set<string>();
  let found = await findDamage(read, depth);
  for (;;) {
    const fresh = found.filter((damage) => damage.mend !== null && !seen.has(nameOf(damage)));
    if (fresh.length === 0) break;
    for (const damage of fresh) {
      seen.add(nameOf(damage));
      // In a write of its own: one that fails leaves the others, and stays among what remains.
      await write(damage.mend!).catch(() => undefined);
    }
    found = await findDamage(read, depth);
    const left = new Set(found.map(nameOf));
    repaired.push(...fresh.filter((damage) => !left.has(nameOf(damage))).map(toFinding));
  }
  return {
    repaired: repaired.slice(0, FINDINGS_MAX),
    remaining: found.slice(0, FINDINGS_MAX).map((damage) => ({ ...toFinding(damage), repairable: false })),
    truncated: repaired.length > FINDINGS_MAX || found.length > FINDINGS_MAX,
  };
}

const nameOf = ({ check, subject, detail }: Damage): string => `${check}\0${subject}\0${detail}`;
