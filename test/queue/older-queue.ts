import type { Database } from "bun:sqlite";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { MIGRATIONS } from "../../src/queue/sqlite/migrate.ts";

/**
 * A queue of an earlier schema with the rows that a closed queue of today has, as far as that schema has their tables and columns.
 *
 * @param directory where it is made, as queue.db
 * @param file the queue of today
 */
export function olderQueue(directory: string, schema: number, file: string): Database {
  const { database } = openDatabase(directory, MIGRATIONS.slice(0, schema));
  database.run("PRAGMA foreign_keys = OFF");
  database.run("ATTACH ? AS today", [file]);
  const names = (sql: string, ...values: string[]): string[] =>
    database
      .query<{ name: string }, string[]>(sql)
      .all(...values)
      .map(({ name }) => name);
  const tables = names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  for (const table of tables) {
    const columns = names("SELECT name FROM pragma_table_info(?)", table).join(", ");
    database.run(`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM today.${table}`);
  }
  database.run("DETACH today");
  return database;
}
