import { Database } from "bun:sqlite";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { makePrivateDirectory, takePlace } from "../../lib/files/atomic-file.ts";
import { isThere } from "../../lib/files/file-system.ts";
import { unusable } from "../file-failure.ts";
import { backUp, MIGRATIONS, migrate, schemaVersion } from "./migrate.ts";
import { corrupt, relayFailure } from "./sqlite-failure.ts";

/** "CLIO" in the file's header says whose it is. */
const APPLICATION_ID = 0x434c494f;
const PAGE_CACHE_KIB = 8_192;
const WAL_KEPT_BYTES = 64 * 1024 * 1024;
/** Files up to this size are checked at every start, larger ones only after an unclean end. */
const ALWAYS_CHECKED_BYTES = 32 * 1024 * 1024;

/** Name of the queue's file in its directory. */
export const QUEUE_FILE = "queue.db";

/**
 * Open the queue's database, making or migrating it where that is needed. The connection holds SQLite's exclusive lock until it is closed.
 *
 * @param directory holds `queue.db` and what SQLite puts beside it; made where it is missing
 * @throws queue_foreign, queue_newer, queue_corrupt: the file is left as it was; queue_unavailable: locks, permissions or the
 * file system; storage_admission_refused: no room
 */
export function openDatabase(directory: string, migrations: readonly string[] = MIGRATIONS): { database: Database; file: string } {
  const file = path.join(directory, QUEUE_FILE);
  try {
    makePrivateDirectory(directory);
    if (!fs.existsSync(file)) create(file, migrations);
    inspect(file, migrations);
    return { database: connect(file, migrations), file };
  } catch (error) {
    throw relayFailure(error, file);
  }
}

const sizeOf = (file: string): number => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Under another name first, so that a file called queue.db is always a whole one. */
function create(file: string, migrations: readonly string[]): void {
  if (sizeOf(`${file}-wal`) > 0) throw corrupt(file, `${path.basename(file)}-wal holds changes of it, but the file itself is gone`);
  const temporary = `${file}.new`;
  const made = makeEmpty(temporary, migrations);
  try {
    keepLog(made, file);
  } finally {
    made.close();
  }
  takePlace(temporary, file);
}

/** For as long as the database lives: it never has a rollback journal under its own name. */
export function keepLog(database: Database, file: string): void {
  const mode = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL").get()?.journal_mode;
  if (mode !== "wal") throw unusable(file, String(mode), "a write-ahead log cannot be had there");
}

/** A new database of the queue under a name that nobody looks for; left-overs of that name are removed. */
export function makeEmpty(file: string, migrations: readonly string[]): Database {
  for (const name of [file, `${file}-journal`, `${file}-wal`, `${file}-shm`]) fs.rmSync(name, { force: true });
  const database = new Database(file, { create: true, readwrite: true });
  try {
    fs.chmodSync(file, 0o600);
    database.run("PRAGMA synchronous = FULL");
    database.run(`PRAGMA application_id = ${APPLICATION_ID}`);
    migrate(database, migrations);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Look into a database through a connection that cannot write, so that whatever is refused stays byte for byte what it was. The files that SQLite
 * makes beside it to read it are removed again.
 */
export function lookInto(file: string, look: (database: Database) => void): void {
  const made = [`${file}-shm`, `${file}-wal`].filter((name) => !isThere(name));
  const database = new Database(file, { readonly: true });
  try {
    look(database);
  } finally {
    database.close();
    for (const name of made) fs.rmSync(name, { force: true });
  }
}

function inspect(file: string, migrations: readonly string[]): void {
  const size = sizeOf(file);
  if (size === 0) throw corrupt(file, "it is empty");
  const clean = sizeOf(`${file}-wal`) === 0;
  lookInto(file, (database) => {
    // Pragmas answer with defaults where a query finds that the file is no database.
    database.run("SELECT count(*) FROM sqlite_schema");
    const pageSize = database.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 1;
    if (clean && size % pageSize !== 0) throw corrupt(file, `its ${size} bytes are no whole number of pages`);
    const id = database.query<{ application_id: number }, []>("PRAGMA application_id").get()?.application_id;
    if (id !== APPLICATION_ID) {
      throw new RelayError("queue_foreign", `${file} is a database of another program (application_id ${id}); it is left as it is`, {
        file,
      });
    }
    inspectSchema(database, file, migrations);
    if (!clean || size <= ALWAYS_CHECKED_BYTES) quickCheck(database, file);
  });
}

/** The number is one that is known, and the tables and indexes are those of that number, with nothing beside them. */
function inspectSchema(database: Database, file: string, migrations: readonly string[]): void {
  const version = schemaVersion(database);
  if (version > migrations.length) {
    throw new RelayError("queue_newer", `${file} has schema ${version}; this clio-relay knows schemas up to ${migrations.length}`, {
      file,
      schema: version,
      newest_known: migrations.length,
    });
  }
  if (version < 1) throw corrupt(file, `its schema has the number ${version}, and the first one is 1`, { schema: version });
  const there = schemaOf(database);
  const due = schemaOfMigrations(migrations.slice(0, version));
  const lacking = [...due].filter(([name, sql]) => there.get(name) !== sql).map(([name]) => name);
  if (lacking.length > 0) {
    throw corrupt(file, `${lacking.join(", ")}: gone, or not those of schema ${version}`, { schema: version });
  }
  const foreign = [...there.keys()].filter((name) => !due.has(name));
  if (foreign.length > 0) {
    throw corrupt(file, `${foreign.slice(0, FOREIGN_NAMED).join(", ")}: there, and not of schema ${version}`, { schema: version });
  }
}

/** Names of strange tables and the like that a refusal lists. */
const FOREIGN_NAMED = 20;

/** Tables, indexes, views and triggers by kind and name, as they were made. A trigger may have the name of a table. */
const schemaOf = (database: Database): ReadonlyMap<string, string> =>
  new Map(
    database
      .query<{ type: string; name: string; sql: string }, []>("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
      .all()
      .map(({ type, name, sql }) => [`${type} ${name}`, sql]),
  );

function schemaOfMigrations(migrations: readonly string[]): ReadonlyMap<string, string> {
  const database = new Database(":memory:");
  try {
    migrate(database, migrations);
    return schemaOf(database);
  } finally {
    database.close();
  }
}

/** @throws queue_corrupt when SQLite finds pages that are malformed */
export function quickCheck(database: Database, file: string): void {
  const rows = database.query<{ quick_check: string }, []>("PRAGMA quick_check(20)").all();
  const problems = rows.map((row) => row.quick_check).filter((line) => line !== "ok");
  if (problems.length > 0) throw corrupt(file, "it does not pass quick_check", { problems });
}

function connect(file: string, migrations: readonly string[]): Database {
  const database = new Database(file, { readwrite: true, create: false });
  try {
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    // The first query takes the lock. Opening alone succeeds although another process holds it.
    keepLog(database, file);
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA temp_store = MEMORY");
    database.run(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
    database.run(`PRAGMA journal_size_limit = ${WAL_KEPT_BYTES}`);
    database.run("BEGIN EXCLUSIVE; COMMIT");
    if (schemaVersion(database) < migrations.length) {
      backUp(database, file);
      migrate(database, migrations);
      // So that the file's own header has the number: whoever installs versions reads it there, and cannot open the file.
      database.run("PRAGMA wal_checkpoint(PASSIVE)");
    }
    database.run("PRAGMA foreign_keys = ON");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
