import type { Database } from "bun:sqlite";
import { RelayError } from "../../domain/errors.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import type { Topic } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { relayFailure } from "./sqlite-failure.ts";

/** Bounds how long the event loop stands still for one commit. */
const BATCH_MAX = 256;

/** Of a write that nothing but an answer follows. */
export interface WriteOptions {
  /** The mark of its commit may follow the answer, so that nobody waits for it, where no other write shares the commit. */
  readonly answersFirst?: boolean;
}

interface Pending extends WriteOptions {
  readonly run: (writing: Writing) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: RelayError) => void;
}

/** Is told of commits: before those who wait for them are, or behind their answers where nothing else follows; once for several that follow each other at once. */
export interface Commits {
  advance(): void;
}

/** Is told how long a transaction took, in seconds, and how many writes it held. */
export type OnCommit = (seconds: number, writes: number) => void;

type Result = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: RelayError };

/**
 * Group commit: the writes that came in since the last commit share one transaction and one flush to the disk. Each has a savepoint of its
 * own, or the transaction for itself, so one that fails harms no other, and nobody is answered before the commit. When that fails, nothing is kept and all are refused with the
 * same error; the next batch starts afresh.
 */
export class Committer {
  #queue: Pending[] = [];
  #scheduled = false;
  #advancing = false;
  #closed = false;

  constructor(
    private readonly database: Database,
    private readonly file: string,
    private readonly reading: Reading,
    private readonly clock: Clock,
    private readonly notify: (topic: Topic) => void,
    private readonly commits: Commits,
    private readonly onCommit: OnCommit = () => undefined,
  ) {}

  /** Run a write in the next batch. `fn` is synchronous, and must leave nothing behind but rows and counts. */
  write<T>(fn: (writing: Writing) => T, options: WriteOptions = {}): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#queue.push({ ...options, run: fn, resolve: resolve as (value: unknown) => void, reject });
    this.#schedule();
    return promise;
  }

  /** Commit what is queued and refuse what comes. */
  close(): void {
    this.#closed = true;
    while (this.#queue.length > 0) this.#flush();
  }

  get closed(): boolean {
    return this.#closed;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Behind the poll for input and output: all requests that have arrived by then take part.
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#queue.length > 0) this.#flush();
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #flush(): void {
    const batch = this.#queue.splice(0, BATCH_MAX);
    const topics = new Set<Topic>();
    const begun = performance.now();
    const results = this.#commit(batch, topics);
    this.onCommit((performance.now() - begun) / 1_000, batch.length);
    if (batch.every(({ answersFirst }) => answersFirst === true)) this.#advanceSoon();
    else this.commits.advance();
    batch.forEach(({ resolve, reject }, index) => {
      const result = results[index]!;
      if (result.ok) resolve(result.value);
      else reject(result.error);
    });
    for (const topic of topics) {
      try {
        this.notify(topic);
      } catch (error) {
        // A listener's mistake is nobody's refusal, and must not be lost either.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #advanceSoon(): void {
    if (this.#advancing || this.#closed) return;
    this.#advancing = true;
    // Behind the answers, which leave in microtasks.
    setImmediate(() => {
      this.#advancing = false;
      if (!this.#closed) this.commits.advance();
    });
  }

  #commit(batch: readonly Pending[], topics: Set<Topic>): readonly Result[] {
    const { sql, counts } = this.reading;
    const before = counts.snapshot();
    try {
      if (this.database.inTransaction) sql.run("ROLLBACK");
      sql.run("BEGIN IMMEDIATE");
      const [first] = batch;
      const results =
        batch.length === 1 && first !== undefined ? [this.#alone(first, topics)] : batch.map((one) => this.#inSavepoint(one, topics));
      if (this.database.inTransaction) sql.run("COMMIT");
      return results;
    } catch (error) {
      counts.restore(before);
      topics.clear();
      this.#abandon();
      const failure: Result = { ok: false, error: relayFailure(error, this.file) };
      return batch.map(() => failure);
    }
  }

  /** The only write of its batch has the transaction for a savepoint, which spares SQLite a copy of each page. */
  #alone(pending: Pending, topics: Set<Topic>): Result {
    return this.#run(pending, topics, () => this.#abandon());
  }

  /** Throws only when the transaction itself is lost. */
  #inSavepoint(pending: Pending, topics: Set<Topic>): Result {
    const { sql } = this.reading;
    sql.run("SAVEPOINT one_write");
    const result = this.#run(pending, topics, (error) => {
      // SQLite gives up the whole transaction on some errors, a full disk among them.
      if (!this.database.inTransaction) throw error;
      sql.run("ROLLBACK TO one_write");
    });
    sql.run("RELEASE one_write");
    return result;
  }

  /** Run one write; when it throws, `undo` takes back what it did to the rows. */
  #run(pending: Pending, topics: Set<Topic>, undo: (error: unknown) => void): Result {
    const { counts } = this.reading;
    const before = counts.snapshot();
    const touched: Topic[] = [];
    try {
      const value = pending.run({ ...this.reading, now: timestamp(this.clock), touch: (topic) => touched.push(topic) });
      for (const topic of touched) topics.add(topic);
      return { ok: true, value };
    } catch (error) {
      undo(error);
      counts.restore(before);
      return { ok: false, error: relayFailure(error, this.file) };
    }
  }

  #abandon(): void {
    try {
      if (this.database.inTransaction) this.reading.sql.run("ROLLBACK");
    } catch {
      // The next batch tries again, and is refused with its own error if that fails too.
    }
  }
}

/** What every call on a closed queue is refused with. */
export const closedError = (): RelayError => new RelayError("shutting_down", "the queue is closed");
