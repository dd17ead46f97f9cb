import { Database } from "bun:sqlite";
import fs from "node:fs";
import path from "node:path";
import schema from "../../src/queue/sqlite/migrations/0001.sql" with { type: "text" };
import { fsyncLatency, type Latency, latencyOf } from "./latency.ts";

export interface BareInsert {
  /** One after the other, one transaction each. */
  readonly submissionsPerSecond: number;
  readonly transaction: Latency;
  /** Append of 4 KiB and fsync(2) in the same directory. */
  readonly fsync: Latency;
}

type Row = Readonly<Record<string, string | number | null>>;

/** The rows of one submission of a command job: what any queue with these tables has to write. */
export interface SubmissionRows {
  readonly job: Row;
  readonly idempotency: Row;
  readonly task: Row;
  readonly events: readonly [Row, Row];
}

/** Open a database with the queue's settings and tables. */
export function bareDatabase(file: string): Database {
  const database = new Database(file, { create: true, readwrite: true });
  database.run("PRAGMA locking_mode = EXCLUSIVE");
  const mode = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL").get();
  if (mode?.journal_mode !== "wal") throw new Error(`${file} has journal mode ${mode?.journal_mode}, not wal`);
  database.run("PRAGMA synchronous = FULL");
  database.run("PRAGMA temp_store = MEMORY");
  database.run("PRAGMA cache_size = -8192");
  database.run("PRAGMA journal_size_limit = 67108864");
  database.run("PRAGMA foreign_keys = ON");
  database.run(schema);
  return database;
}

/** Rows of the `number`-th submission of `python3 train.py --epochs 3`, with ids of their own that begin with the time. */
export function submissionRows(number: number): SubmissionRows {
  const id = (prefix: string): string => `${prefix}_${Bun.randomUUIDv7().replaceAll("-", "")}`;
  const now = new Date().toISOString();
  const jobId = id("job");
  const key = id("key");
  const taskId = id("task");
  const spec = {
    argv: ["python3", "train.py", "--epochs", "3"],
    workdir: null,
    env: {},
    login: false,
    timeout_seconds: null,
    outputs: [],
    retries: 0,
  };
  const digest = new Bun.CryptoHasher("sha256").update(`${number} ${JSON.stringify(spec)}`).digest("hex");
  return {
    job: {
      job_id: jobId,
      cluster: "local",
      kind: "command",
      lane: "workload",
      state: "queued",
      next_seq: 3,
      created_at: now,
      updated_at: now,
      title: "python3 train.py --epochs 3",
      idempotency_key: key,
      owner_session_id: null,
      owner_session_generation_id: null,
      submission_digest: digest,
      used_artifact_refs: "[]",
      metadata: "{}",
      spec: JSON.stringify(spec),
    },
    idempotency: { owner_session_id: "", idempotency_key: key, job_id: jobId, job_digest: digest, state: "committed" },
    task: { sequence: 1, task_id: taskId, name: "command", state: "queued", created_at: now, updated_at: now },
    events: [
      {
        seq: 1,
        event_type: "job.queued",
        message: "The job waits in the queue.",
        level: "info",
        payload: JSON.stringify({ lane: "workload", kind: "command" }),
        created_at: now,
      },
      {
        seq: 2,
        event_type: "task.queued",
        message: "Task command waits for the job to start.",
        level: "info",
        payload: JSON.stringify({ task_id: taskId, name: "command" }),
        created_at: now,
      },
    ],
  };
}

function inserter(database: Database, table: string, row: Row): (row: Row, job?: number) => number {
  const columns = Object.keys(row);
  const ofJob = table !== "jobs" && table !== "idempotency";
  const names = ofJob ? ["job", ...columns] : columns;
  const statement = database.prepare(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`);
  return (values, job) => {
    const given = columns.map((column) => values[column] ?? null);
    return Number(statement.run(...(ofJob ? [job ?? null, ...given] : given)).lastInsertRowid);
  };
}

/**
 * What durable submissions cost without any queue: bare transactions, each inserting the rows of one submission,
 * one after the other. The rows are made beforehand.
 *
 * @param directory where the database is made; it must be on the disk that is to be measured
 * @param submissions how many are timed, after a few that are not
 */
export function bareInsert(directory: string, submissions: number): BareInsert {
  const home = fs.mkdtempSync(path.join(directory, "bare-insert-"));
  const database = bareDatabase(path.join(home, "queue.db"));
  try {
    const warmUp = 20;
    const rows = Array.from({ length: warmUp + submissions }, (_, number) => submissionRows(number));
    const first = rows[0]!;
    const begin = database.prepare("BEGIN IMMEDIATE");
    const commit = database.prepare("COMMIT");
    const insertJob = inserter(database, "jobs", first.job);
    const insertIdempotency = inserter(database, "idempotency", first.idempotency);
    const insertTask = inserter(database, "tasks", first.task);
    const insertEvent = inserter(database, "events", first.events[0]);
    const times: number[] = [];
    for (const { job, idempotency, task, events } of rows) {
      const from = performance.now();
      begin.run();
      const sequence = insertJob(job);
      insertIdempotency(idempotency);
      insertTask(task, sequence);
      for (const event of events) insertEvent(event, sequence);
      commit.run();
      times.push(performance.now() - from);
    }
    const timed = times.slice(warmUp);
    return {
      submissionsPerSecond: (1_000 * timed.length) / timed.reduce((sum, ms) => sum + ms, 0),
      transaction: latencyOf(timed),
      fsync: fsyncLatency(home, 200),
    };
  } finally {
    database.close();
    fs.rmSync(home, { recursive: true, force: true });
  }
}

if (import.meta.main) console.log(JSON.stringify(bareInsert(process.argv[2] ?? ".", Number(process.argv[3] ?? 2_000)), null, 2));
