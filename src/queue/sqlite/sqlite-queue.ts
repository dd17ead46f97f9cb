import type { Database } from "bun:sqlite";
import type { Clock } from "../../lib/clock.ts";
import { Notifier } from "../../lib/notifier.ts";
import type { QueueStore, Topic } from "../store.ts";
import type { Reading } from "./access.ts";
import { artifact, artifacts } from "./artifacts.ts";
import { attempt, attempts } from "./attempt-rows.ts";
import { startAttempt, voidAttempt } from "./attempt-start.ts";
import { audit } from "./audit.ts";
import { cancelRequests, requestCancel } from "./cancel.ts";
import { boundDelays, claim, nextDelay } from "./claim.ts";
import { Committer, closedError } from "./committer.ts";
import { Counts } from "./counts.ts";
import { endpoints, heartbeat, registerEndpoint, stopEndpoint } from "./endpoints.ts";
import { appendEvents, events } from "./events.ts";
import { emitOffsets, ingest } from "./ingest.ts";
import { stats, takeOverLease } from "./leases.ts";
import { job, jobsAhead, queueWindow, recentJobs } from "./listing.ts";
import { openAttempts } from "./open-attempts.ts";
import { latestProgress, progress, recordProgress } from "./progress.ts";
import { quarantine } from "./quarantine.ts";
import { repair } from "./repair.ts";
import { segments } from "./segments.ts";
import { settle } from "./settle.ts";
import { relayFailure } from "./sqlite-failure.ts";
import { Statements } from "./statements.ts";
import { SteadyTime } from "./steady-time.ts";
import { prepareSubmission, submit, submitted } from "./submit.ts";
import { recordTaskEvent, task, taskEvents, tasks } from "./tasks.ts";

export interface QueueOptions {
  readonly clock: Clock;
  /** How many jobs that have not ended the queue admits. */
  readonly activeJobsMax: number;
  readonly leaseSeconds: number;
}

/** The store on an open database, which it closes. Writes go through the committer; reads run at once, between two transactions. */
export function sqliteQueue(database: Database, file: string, options: QueueOptions): QueueStore {
  const sql = new Statements(database);
  const counts = new Counts();
  const reading: Reading = { sql, counts, time: new SteadyTime(options.clock) };
  const notifier = new Notifier<Topic>();
  const committer = new Committer(database, file, reading, options.clock, (topic) => notifier.notify(topic));
  const leaseMs = options.leaseSeconds * 1_000;
  let open = true;

  const write = committer.write.bind(committer);
  // Every promise of the interface settles with a RelayError or a value, whatever the read throws.
  const read = async <T>(fn: (r: Reading) => T): Promise<T> => {
    if (!open) throw closedError();
    try {
      return fn(reading);
    } catch (error) {
      throw relayFailure(error, file);
    }
  };

  boundDelays(reading);
  counts.read(sql);

  return {
    async submit(submission, lane) {
      const prepared = prepareSubmission(submission, lane);
      return write((w) => submit(w, prepared, options.activeJobsMax));
    },
    submitted: (submission) => read((r) => submitted(r, submission)),
    job: (jobId) => read((r) => job(r, jobId)),
    recentJobs: (filter, before, limit) => read((r) => recentJobs(r, filter, before, limit)),
    queueWindow: (filter, page, scanLimit) => read((r) => queueWindow(r, filter, page, scanLimit)),
    jobsAhead: (jobId) => read((r) => jobsAhead(r, jobId)),
    stats: () => read(stats),

    claim: (endpointId, capacity) => write((w) => claim(w, endpointId, capacity, leaseMs)),
    nextDelay: () => read(nextDelay),
    startAttempt: (fence, started) => write((w) => startAttempt(w, fence, started)),
    voidAttempt: (fence, reason) => write((w) => voidAttempt(w, fence, reason)),
    settle: (fence, settlement) => write((w) => settle(w, fence, settlement)),
    ingest: (fence, batch) => write((w) => ingest(w, fence, batch)),
    emitOffsets: (fence) => read((r) => emitOffsets(r, fence)),
    segments: (jobId) => read((r) => segments(r, jobId)),
    attempt: (jobId, number) => read((r) => attempt(r, jobId, number)),
    attempts: (jobId) => read((r) => attempts(r, jobId)),
    openAttempts: () => write(openAttempts),
    takeOverLease: (fence, endpointId) => write((w) => takeOverLease(w, fence, endpointId, leaseMs)),

    requestCancel: (jobId, wish) => write((w) => requestCancel(w, jobId, wish)),
    quarantine: (jobId, reason) => write((w) => quarantine(w, jobId, reason)),
    cancelRequests: () => read(cancelRequests),

    appendEvents: (jobId, added) => write((w) => appendEvents(w, jobId, added)),
    events: (jobId, page) => read((r) => events(r, jobId, page)),
    tasks: (jobId, page) => read((r) => tasks(r, jobId, page)),
    task: (taskId) => read((r) => task(r, taskId)),
    recordTaskEvent: (taskId, event) => write((w) => recordTaskEvent(w, taskId, event)),
    taskEvents: (taskId, page) => read((r) => taskEvents(r, taskId, page)),
    recordProgress: (jobId, report) => write((w) => recordProgress(w, jobId, report)),
    progress: (jobId, page) => read((r) => progress(r, jobId, page)),
    latestProgress: (jobId) => read((r) => latestProgress(r, jobId)),
    artifacts: (jobId, page) => read((r) => artifacts(r, jobId, page)),
    artifact: (artifactId) => read((r) => artifact(r, artifactId)),

    registerEndpoint: (endpoint) => write((w) => registerEndpoint(w, endpoint)),
    heartbeat: (endpointId, laneLastError) => write((w) => heartbeat(w, endpointId, laneLastError, leaseMs)),
    stopEndpoint: (endpointId) => write((w) => stopEndpoint(w, endpointId)),
    endpoints: (page) => read((r) => endpoints(r, page)),

    subscribe: (topic, listener) => notifier.subscribe(topic, listener),

    audit: (depth = { deep: false }) => audit(read, depth),
    repair: (depth = { deep: false }) => repair(read, write, depth),

    async close() {
      if (!open) return;
      open = false;
      committer.close();
      sql.finalize();
      try {
        database.close(true);
      } catch (error) {
        throw relayFailure(error, file);
      }
    },
  };
}
