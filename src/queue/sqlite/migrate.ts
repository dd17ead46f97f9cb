import type { Database } from "bun:sqlite";
import fs from "node:fs";
import { takePlace } from "../../lib/files/atomic-file.ts";
import first from "./migrations/0001.sql" with { type: "text" };
import lineage from "./migrations/0002.sql" with { type: "text" };
import inputs from "./migrations/0003.sql" with { type: "text" };
import trace from "./migrations/0004.sql" with { type: "text" };
import scheduler from "./migrations/0005.sql" with { type: "text" };

/** One script per schema number, from 1. */
export const MIGRATIONS: readonly string[] = [first, lineage, inputs, trace, scheduler];

/** The newest schema that this program knows: a queue of a later one is refused. */
export const QUEUE_SCHEMA = MIGRATIONS.length;

/** The number that a file carries (PRAGMA user_version). */
export function schemaVersion(database: Database): number {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
}

/**
 * Bring the tables to the newest schema, in one transaction. Foreign keys must be off: scripts may rebuild tables.
 *
 * @param migrations one script per schema number, from 1
 */
export function migrate(database: Database, migrations: readonly string[]): void {
  const from = schemaVersion(database);
  if (from >= migrations.length) return;
  // Rules that rows do not keep are for the audit to find, where a script copies them.
  database.run("PRAGMA ignore_check_constraints = ON");
  database.transaction(() => {
    for (const script of migrations.slice(from)) database.run(script);
    database.run(`PRAGMA user_version = ${migrations.length}`);
  })();
  database.run("PRAGMA ignore_check_constraints = OFF");
}

/**
 * Copy the whole database to `<file>.v<number>.bak`, replacing an older copy of that name. The copy appears whole or not at all.
 *
 * @returns the name of the copy
 */
export function backUp(database: Database, file: string): string {
  const target = `${file}.v${schemaVersion(database)}.bak`;
  const temporary = `${target}.new`;
  fs.rmSync(temporary, { force: true });
  try {
    database.run("VACUUM INTO ?", [temporary]);
    fs.chmodSync(temporary, 0o600);
    const fd = fs.openSync(temporary, "r+");
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  takePlace(temporary, target);
  return target;
}
