import type { AuditReport, CheckDepth } from "../store.ts";
import type { Reading } from "./access.ts";
import { attempts } from "./checks/attempts.ts";
import { type Damage, type JobCheck, toFinding, type WholeCheck } from "./checks/damage.ts";
import { counters, foreignKeys, integrity } from "./checks/file.ts";
import { idempotencyKeys, orphanedKeys } from "./checks/keys.ts";
import { leases } from "./checks/leases.ts";
import { deltaEvents, keptBytes, segmentBases } from "./checks/logs.ts";
import { records } from "./checks/records.ts";
import { eventPayloads, eventSequences, recordSequences, taskEventSequences } from "./checks/sequences.ts";
import { taskStates } from "./checks/tasks.ts";

/** Findings that one report lists. */
export const FINDINGS_MAX = 1_000;
/** Jobs that are looked at before the queue's other work gets its turn. */
const RANGE = 250;

/** Each reads the whole file in one go: seconds for some hundred megabytes, in which nothing else of this process happens. */
const DEEP_CHECKS: readonly WholeCheck[] = [integrity, foreignKeys];
const WHOLE_CHECKS: readonly WholeCheck[] = [orphanedKeys, counters];
/** In the order in which a repair has to go: attempts before leases, segments before the positions in them. */
const JOB_CHECKS: readonly JobCheck[] = [
  records,
  eventSequences,
  taskEventSequences,
  eventPayloads,
  recordSequences,
  attempts,
  leases,
  taskStates,
  idempotencyKeys,
  segmentBases,
  deltaEvents,
  keptBytes,
];

const TABLES = [
  "jobs",
  "idempotency",
  "tasks",
  "events",
  "task_events",
  "progress",
  "artifacts",
  "attempts",
  "leases",
  "segments",
] as const;

export type Read = <T>(fn: (r: Reading) => T) => Promise<T>;

/** Every damage there is, up to one more than a report lists. */
export async function findDamage(read: Read, { deep }: CheckDepth): Promise<Damage[]> {
  const found: Damage[] = [];
  for (const check of deep ? [...DEEP_CHECKS, ...WHOLE_CHECKS] : WHOLE_CHECKS) {
    found.push(...(await read(check)));
    await turn();
  }
  const last = await read((r) => r.sql.get<{ last: number | null }>("SELECT max(sequence) AS last FROM jobs")?.last ?? 0);
  for (let from = 1; from <= last && found.length <= FINDINGS_MAX; from += RANGE) {
    for (const check of JOB_CHECKS) {
      found.push(...(await read((r) => check(r, { from, to: from + RANGE - 1 }))));
      await turn();
    }
  }
  return found;
}

/** Check the queue without changing anything. Unless it is deep, the queue goes on meanwhile. */
export async function audit(read: Read, depth: CheckDepth): Promise<AuditReport> {
  const checked: Record<string, number> = {};
  for (const table of TABLES) {
    checked[table] = await read((r) => r.sql.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? 0);
    await turn();
  }
  const found = await findDamage(read, depth);
  return {
    ok: found.length === 0,
    checked,
    findings: found.slice(0, FINDINGS_MAX).map(toFinding),
    truncated: found.length > FINDINGS_MAX,
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
