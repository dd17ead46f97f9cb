import type { Database } from "bun:sqlite";
import type { Clock } from "../../lib/waiting/clock.ts";
import { Notifier } from "../../lib/waiting/notifier.ts";
import type { QueueStore, Topic } from "../store.ts";
import type { Reading } from "./access.ts";
import { audit } from "./audit.ts";
import type { Calls } from "./calls/access.ts";
import { attemptCalls } from "./calls/attempts.ts";
import { endpointCalls } from "./calls/endpoints.ts";
import { inputCalls } from "./calls/inputs.ts";
import { jobCalls } from "./calls/jobs.ts";
import { lineageCalls } from "./calls/lineage.ts";
import { recordCalls } from "./calls/records.ts";
import { schedulerCalls } from "./calls/scheduler.ts";
import { boundDelays } from "./claim.ts";
import { type Commits, Committer, closedError, type OnCommit } from "./committer.ts";
import { Counts } from "./counts.ts";
import { HeldAttempts } from "./held-attempts.ts";
import { repair } from "./repair.ts";
import { relayFailure } from "./sqlite-failure.ts";
import { Statements } from "./statements.ts";
import { SteadyTime } from "./steady-time.ts";

export interface QueueOptions {
  readonly clock: Clock;
  /** How many jobs that have not ended the queue admits. */
  readonly activeJobsMax: number;
  /** How many consumers an artifact may have; LIMITS.consumersPerArtifact unless given. */
  readonly consumersMax?: number;
  readonly leaseSeconds: number;
  /** Told of each transaction. */
  readonly onCommit?: OnCommit;
}

/** Says beside the file how far the commits have come. */
export interface Mark extends Commits {
  close(): void;
}

const UNMARKED: Mark = { advance: () => undefined, close: () => undefined };

/**
 * The store on an open database, which it closes. Writes go through the committer; reads run at once, between two transactions.
 *
 * @param markOf makes the mark that says how far the commits have come
 */
export function sqliteQueue(
  database: Database,
  file: string,
  options: QueueOptions,
  markOf: (database: Database) => Mark = () => UNMARKED,
): QueueStore {
  const sql = new Statements(database);
  const reading: Reading = { sql, counts: new Counts(), time: new SteadyTime(options.clock), held: new HeldAttempts() };
  const notifier = new Notifier<Topic>();
  boundDelays(reading);
  reading.counts.read(sql);
  const mark = markOf(database);
  const committer = new Committer(database, file, reading, options.clock, (topic) => notifier.notify(topic), mark, options.onCommit);
  const leaseMs = options.leaseSeconds * 1_000;
  const calls: Calls = {
    async read(fn) {
      if (committer.closed) throw closedError();
      try {
        return fn(reading);
      } catch (error) {
        throw relayFailure(error, file);
      }
    },
    write: (fn, options) => committer.write(fn, options),
  };

  return {
    ...jobCalls(calls, options.activeJobsMax, options.consumersMax),
    ...attemptCalls(calls, reading.held, leaseMs),
    ...recordCalls(calls),
    ...inputCalls(calls),
    ...lineageCalls(calls),
    ...endpointCalls(calls, leaseMs),
    ...schedulerCalls(calls, reading.held),
    subscribe: (topic, listener) => notifier.subscribe(topic, listener),
    audit: (depth = { deep: false }) => audit(calls.read, depth),
    repair: (depth = { deep: false }) => repair(calls.read, calls.write, depth),
    async close() {
      if (committer.closed) return;
      committer.close();
      sql.finalize();
      mark.close();
      try {
        database.close(true);
      } catch (error) {
        throw relayFailure(error, file);
      }
    },
  };
}
