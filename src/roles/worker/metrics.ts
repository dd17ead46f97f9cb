import fs from "node:fs";
import { slotsOf } from "../../domain/endpoint.ts";
import { isRelayError } from "../../domain/errors.ts";
import { JOB_KINDS, type Job, LANES } from "../../domain/job.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import { addProcess } from "../../lib/system/process-metrics.ts";
import { Counter, Exposition, Histogram } from "../../lib/text/exposition.ts";
import type { QueueStore, Settlement } from "../../queue/store.ts";

/** From a commit on a fast disk to one on a disk that is in trouble, in seconds. */
const COMMIT_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What a worker counts of itself, in memory; see docs/metrics.md. */
export class WorkerMetrics {
  readonly #commits = new Histogram(COMMIT_BOUNDS);
  readonly #writes = new Counter();
  readonly #submissions = new Counter("result", ["accepted", "existing"]);
  readonly #attempts = new Counter("reason", ["completed", "exit_nonzero"]);
  readonly #jobs = new Counter("state", ["succeeded", "failed", "canceled"]);
  readonly #kept = new Counter("stream", ["stdout", "stderr"]);
  readonly #dropped = new Counter("stream", ["stdout", "stderr"]);
  #followers = 0;

  /** A transaction was committed. */
  committed(seconds: number, writes: number): void {
    this.#commits.observe(seconds);
    this.#writes.add("", writes);
  }

  /** Somebody's submission was refused before it came to the queue. */
  refused(error: unknown): void {
    this.#submissions.add(isRelayError(error) ? error.code : "internal_error");
  }

  /** The same store, with what goes through it counted. Nobody waits for that. */
  counted(store: QueueStore): QueueStore {
    return {
      ...store,
      submit: (submission, lane, trace) => {
        const answer = store.submit(submission, lane, trace);
        answer.then(
          ({ existing }) => this.#submissions.add(existing ? "existing" : "accepted"),
          (error: unknown) => this.refused(error),
        );
        return answer;
      },
      settle: async (fence, settlement) => this.#settled(await store.settle(fence, settlement), settlement),
      retainSchedulerJob: async (fence, settlement) => this.#settled(await store.retainSchedulerJob(fence, settlement), settlement),
      subscribe: (topic, listener) => {
        const stop = store.subscribe(topic, listener);
        if (!topic.startsWith("job:")) return stop;
        this.#followers++;
        let following = true;
        return () => {
          if (following) this.#followers--;
          following = false;
          stop();
        };
      },
    };
  }

  #settled(job: Job, { outcome, captures }: Settlement): Job {
    this.#attempts.add(outcome.reason);
    if (job.outcome !== null) this.#jobs.add(job.state);
    for (const [stream, { kept, dropped }] of Object.entries(captures)) {
      this.#kept.add(stream, kept);
      this.#dropped.add(stream, dropped);
    }
    return job;
  }

  /** The text of /metrics. */
  text(status: WorkerStatus): string {
    const { capacity, queued_by_kind, active_leases_by_lane: used } = status;
    const queued = Object.values(queued_by_kind).reduce((sum, n) => sum + n, 0);
    const running = Object.values(used).reduce((sum, n) => sum + n, 0);
    const name = (own: string): string => `clio_relay_worker_${own}`;
    const out = new Exposition()
      .add(name("build_info"), "gauge", "Version and cluster, of a number that is 1", [
        [{ version: status.version, cluster: status.cluster }, 1],
      ])
      .add(name("jobs"), "gauge", "Jobs that have not ended, by state: running is claimed or running", [
        [{ state: "queued" }, queued],
        [{ state: "running" }, running],
      ])
      .add(
        name("jobs_queued"),
        "gauge",
        "Jobs that wait, by kind",
        JOB_KINDS.map((kind) => [{ kind }, queued_by_kind[kind] ?? 0]),
      )
      .one(name("jobs_quarantined"), "gauge", "Jobs whose record cannot be read", status.quarantined)
      .add(
        name("slots"),
        "gauge",
        "Attempts that may run at a time, by lane",
        LANES.map((lane) => [{ lane }, slotsOf(capacity, lane)]),
      )
      .add(
        name("slots_used"),
        "gauge",
        "Attempts that are under way, by lane",
        LANES.map((lane) => [{ lane }, used[lane] ?? 0]),
      )
      .add(name("submissions_total"), "counter", "Submissions, by what became of them", this.#submissions.samples())
      .add(name("attempts_ended_total"), "counter", "Attempts that this process saw end, by reason", this.#attempts.samples())
      .add(name("jobs_ended_total"), "counter", "Jobs that ended with such an attempt, by state", this.#jobs.samples())
      .histogram(name("commit_duration_seconds"), "From a transaction's beginning to its being on the disk", this.#commits)
      .add(name("commit_writes_total"), "counter", "Writes that these transactions held", this.#writes.samples())
      .one(name("followers"), "gauge", "Streams, waits and logs that wait for news of a job", this.#followers)
      .add(name("output_kept_bytes_total"), "counter", "Output of ended attempts that was kept, by stream", this.#kept.samples())
      .add(name("output_dropped_bytes_total"), "counter", "Output of ended attempts beyond its quota, by stream", this.#dropped.samples());
    addRoom(out, name, status.spool_dir);
    return addProcess(out).text();
  }
}

/** How much room there is for what jobs write. Nothing where the file system does not say. */
function addRoom(out: Exposition, name: (own: string) => string, directory: string): void {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(directory);
    out
      .one(name("spool_free_bytes"), "gauge", "Room for the user on the spool's file system", bavail * bsize)
      .one(name("spool_size_bytes"), "gauge", "Size of the spool's file system", blocks * bsize);
  } catch {
    // It is said where it matters: by admission.
  }
}
