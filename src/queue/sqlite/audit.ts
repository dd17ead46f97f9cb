import type { AuditReport, CheckDepth } from "../store.ts";
import { toFinding } from "./checks/damage.ts";
import { FINDINGS_MAX, findDamage, type Read } from "./survey.ts";

const TABLES = [
  "jobs",
  "idempotency",
  "tasks",
  "events",
  "task_events",
  "progress",
  "artifacts",
  "used_artifacts",
  "transforms",
  "attempts",
  "leases",
  "scheduler_jobs",
  "segments",
] as const;

/** Check the queue without changing anything. Unless it is deep, the queue goes on meanwhile. */
export async function audit(read: Read, depth: CheckDepth): Promise<AuditReport> {
  const checked: Record<string, number> = Object.fromEntries(TABLES.map((table) => [table, 0]));
  const found = await findDamage(read, depth, (table, rows) => {
    checked[table] = (checked[table] ?? 0) + rows;
  });
  return {
    ok: found.length === 0,
    checked,
    findings: found.slice(0, FINDINGS_MAX).map(toFinding),
    truncated: found.length > FINDINGS_MAX,
  };
}
