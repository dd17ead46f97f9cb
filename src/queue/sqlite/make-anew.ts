import type { Database, SQLQueryBindings } from "bun:sqlite";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { fsyncDirectory } from "../../lib/files/atomic-file.ts";
import { nameForDamaged } from "../queue-files.ts";
import { keepLog, lookInto, makeEmpty, quickCheck } from "./database-file.ts";
import { MIGRATIONS, schemaVersion } from "./migrate.ts";
import { corrupt, isConstraint, relayFailure, sqliteCode } from "./sqlite-failure.ts";

/**
 * Make a damaged queue file anew from its tables. That brings back whatever can be derived from them: indexes, and the order of pages. The damaged
 * file is kept beside it with its write-ahead log.
 *
 * @returns the name under which the damaged file is kept
 * @throws RelayError queue_corrupt when a table itself cannot be read; the file is left as it was
 */
export function makeAnew(file: string): string {
  const anew = `${file}.anew`;
  try {
    copyTables(file, anew);
  } catch (error) {
    fs.rmSync(anew, { force: true });
    throw error;
  }
  const kept = nameForDamaged(file);
  // In this order: whatever is interrupted leaves a queue that is refused, never one that lacks something.
  fs.renameSync(file, kept);
  if (fs.existsSync(`${file}-wal`)) fs.renameSync(`${file}-wal`, `${kept}-wal`);
  fs.rmSync(`${file}-shm`, { force: true });
  fsyncDirectory(path.dirname(file));
  fs.renameSync(anew, file);
  fsyncDirectory(path.dirname(file));
  return kept;
}

function copyTables(file: string, anew: string): void {
  try {
    lookInto(file, (damaged) => {
      const version = schemaVersion(damaged);
      if (version < 1) throw corrupt(file, `its schema has the number ${version}, so it is not known what its tables are`);
      const made = makeEmpty(anew, MIGRATIONS.slice(0, version));
      try {
        // Rules that rows do not keep are for the audit to find.
        made.run("PRAGMA ignore_check_constraints = ON");
        made.run("PRAGMA foreign_keys = OFF");
        made.transaction(() => {
          for (const table of tablesOf(made)) copyRows(damaged, made, table);
        })();
        quickCheck(made, anew);
        keepLog(made, anew);
      } finally {
        made.close();
      }
    });
  } catch (error) {
    const failure = isOfTheRows(error)
      ? corrupt(file, "what its tables hold is not what tables of a queue hold", { sqlite: sqliteCode(error) }, error)
      : relayFailure(error, file);
    if (failure.code !== "queue_corrupt") throw failure;
    throw new RelayError(failure.code, failure.message, failure.data, BEYOND_REPAIR, { cause: error });
  }
}

/**
 * Whether the damaged file is at fault: a table or a column that is not there, rows that the rules of a sound table refuse, values that are none. A page in
 * the place of another one can hold rows that SQLite reads without a complaint.
 */
const isOfTheRows = (error: unknown): boolean =>
  isConstraint(error) || ["SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE"].includes(sqliteCode(error) ?? "");

/** The counters of sequences come after the tables whose rows move them. */
const tablesOf = (database: Database): string[] => [
  ...database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
    .all()
    .map(({ name }) => name),
  "sqlite_sequence",
];

function copyRows(from: Database, to: Database, table: string): void {
  if (table === "sqlite_sequence") to.run("DELETE FROM sqlite_sequence");
  const columns = to
    .query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)")
    .all(table)
    .map(({ name }) => name);
  const list = columns.join(", ");
  const insert = to.prepare<unknown, SQLQueryBindings[]>(`INSERT INTO ${table} (${list}) VALUES (${columns.map(() => "?").join(", ")})`);
  const rows = from.prepare<Record<string, SQLQueryBindings>, []>(`SELECT ${list} FROM ${table} NOT INDEXED`);
  try {
    for (const row of rows.iterate()) insert.run(...columns.map((column) => row[column]!));
  } finally {
    insert.finalize();
    rows.finalize();
  }
}

const BEYOND_REPAIR =
  "its tables cannot be read; put a backup in its place, or let the recover command of sqlite3 read what it can of a copy";
