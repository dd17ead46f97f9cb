import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";

export type Value = string | number | null;

/** Prepared statements of one connection, each compiled on first use and kept. Texts must be constants, never built from data. */
export class Statements {
  readonly #cache = new Map<string, Statement<unknown, SQLQueryBindings[]>>();

  constructor(private readonly database: Database) {}

  /** The first row, or null. */
  get<Row>(sql: string, ...values: Value[]): Row | null {
    return this.#prepared(sql).get(...values) as Row | null;
  }

  all<Row>(sql: string, ...values: Value[]): Row[] {
    return this.#prepared(sql).all(...values) as Row[];
  }

  /** Returns how many rows were changed, and the rowid of the last insert. */
  run(sql: string, ...values: Value[]): { readonly changes: number; readonly lastInsertRowid: number } {
    const { changes, lastInsertRowid } = this.#prepared(sql).run(...values);
    return { changes, lastInsertRowid: Number(lastInsertRowid) };
  }

  /** SQLite keeps a connection, and its lock, until the last statement is gone. */
  finalize(): void {
    for (const statement of this.#cache.values()) statement.finalize();
    this.#cache.clear();
  }

  #prepared(sql: string): Statement<unknown, SQLQueryBindings[]> {
    let statement = this.#cache.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare<unknown, SQLQueryBindings[]>(sql);
      this.#cache.set(sql, statement);
    }
    return statement;
  }
}
