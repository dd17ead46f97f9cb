import type { CheckDepth, Finding, RepairReport } from "../store.ts";
import type { Writing } from "./access.ts";
import { type Damage, toFinding } from "./checks/damage.ts";
import { FINDINGS_MAX, findDamage, type Read, reasonOf } from "./survey.ts";

export type Write = <T>(fn: (w: Writing) => T) => Promise<T>;

/** Rounds of about FINDINGS_MAX findings each. A mending that brings damage about anew, or a queue that does so meanwhile, ends there too. */
const ROUNDS_MAX = 50;
const DETAIL_MAX = 2_000;

/**
 * Put right what can be derived. Goes on as long as a round brings something about, in a bounded number of rounds: mending one thing may
 * uncover another, and a round sees only so many findings. What is left then says why it could not be mended, where that was tried.
 */
export async function repair(read: Read, write: Write, depth: CheckDepth): Promise<RepairReport> {
  const repaired: Finding[] = [];
  const tried = new Map<string, string | null>();
  let found = await findDamage(read, depth);
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const fresh = found.filter((damage) => damage.mend !== null && !tried.has(nameOf(damage)));
    if (fresh.length === 0) break;
    // Each in a write of its own: one that fails leaves the others, and stays among what remains.
    for (const damage of fresh) tried.set(nameOf(damage), await failureOf(write(damage.mend!)));
    found = await findDamage(read, depth);
    const left = new Set(found.map(nameOf));
    const mended = fresh.filter((damage) => !left.has(nameOf(damage)));
    repaired.push(...mended.map(toFinding));
    // What stood in the way of a mending may be mended now.
    if (mended.length > 0) for (const [name, failure] of tried) if (failure !== null) tried.delete(name);
  }
  return {
    repaired: repaired.slice(0, FINDINGS_MAX),
    remaining: found.slice(0, FINDINGS_MAX).map((damage) => remains(damage, tried.get(nameOf(damage)))),
    truncated: repaired.length > FINDINGS_MAX || found.length > FINDINGS_MAX,
  };
}

/** Why a write failed; null after one that was committed. */
async function failureOf(write: Promise<void>): Promise<string | null> {
  try {
    await write;
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}

/** `failure` is undefined for what was not tried, because nothing can be derived or the rounds were over, and null for what a committed write left wrong. */
function remains(damage: Damage, failure: string | null | undefined): Finding {
  const finding = toFinding(damage);
  if (failure === undefined) return finding;
  if (failure === null) return { ...finding, repairable: false };
  return { ...finding, detail: `${finding.detail}; mending it failed: ${failure}`.slice(0, DETAIL_MAX), repairable: false };
}

const nameOf = ({ check, subject, detail }: Damage): string => `${check}\0${subject}\0${detail}`;
