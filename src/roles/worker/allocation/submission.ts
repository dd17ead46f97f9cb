import { isRelayError } from "../../../domain/errors.ts";
import type { SchedulerJob } from "../../../domain/scheduler.ts";
import { Backoff } from "../../../lib/waiting/backoff.ts";
import type { SubmissionFinding } from "../../../queue/store.ts";
import type { BatchJob, Lookup, MarkerFinding, SchedulerProvider, SubmitOutcome } from "../../../scheduler/provider.ts";
import type { HostedAttempt } from "../attempt-host.ts";
import { messageOf } from "../patience.ts";
import { Question } from "./question.ts";
import type { AllocationTimes } from "./times.ts";

/** What a submission has to know of its attempt. */
export type SubmittingAttempt = Pick<HostedAttempt, "fence" | "ring"> & {
  readonly context: Pick<HostedAttempt["context"], "store" | "clock">;
};

/**
 * `open`: nobody knows yet. `submitted`: the record says as what. `refused`: there is no such job, in the submit command's words; `away`: the scheduler did not
 * answer then, so that these say nothing of the job.
 */
export type Found =
  | { readonly kind: "open" }
  | { readonly kind: "submitted"; readonly record: SchedulerJob }
  | { readonly kind: "refused"; readonly said: string; readonly away?: boolean };

const OPEN: Found = { kind: "open" };

/**
 * A submission that is on record as intended, until it is known what became of it (docs/schedulers.md, Submitting at most once). It is made at most once; whatever
 * is in doubt is looked up by its marker, and never submitted again.
 */
export class Submission {
  readonly #submit: Question<SubmitOutcome>;
  readonly #find: Question<MarkerFinding>;
  readonly #backoff: Backoff;
  /** `since`: when it was, or the scheduler last did not answer. */
  #refused: { readonly said: string; readonly since: number; readonly away: boolean } | null = null;
  #nones = 0;
  #nextLook = 0;
  #obstacle: string | null = null;

  constructor(
    private readonly around: SubmittingAttempt,
    private readonly provider: Pick<SchedulerProvider, "name" | "submit" | "find">,
    private readonly intended: SchedulerJob,
    private readonly clusters: readonly string[],
    private readonly times: AllocationTimes,
    /** Whether a job that turns up after all would run nothing, since its shim finds start.json taken. */
    private readonly fenced = true,
  ) {
    const ring = () => around.ring();
    this.#submit = new Question(ring);
    this.#find = new Question(ring);
    this.#backoff = new Backoff(times.doubtFirst, times.doubtMost);
  }

  /** What is in the way; null where nothing is. */
  get obstacle(): string | null {
    return this.#submit.open ? `it is being submitted to ${this.provider.name}` : this.#obstacle;
  }

  /** Whether the submit command runs, so that its word is worth waiting for. */
  get underWay(): boolean {
    return this.#submit.open;
  }

  /** Run the submit command; once, by whoever has recorded the intention. */
  submit(job: BatchJob): void {
    this.#submit.ask(() =>
      this.provider.submit(job).catch((error: unknown): SubmitOutcome => {
        // What the provider refuses has started nothing.
        if (isRelayError(error, "job_submission_refused") || isRelayError(error, "scheduler_unavailable"))
          return { kind: "refused", said: error.message };
        return { kind: "doubt", said: messageOf(error) };
      }),
    );
  }

  /** An earlier worker's submit command has said no, in these words. */
  refused(said: string): void {
    this.#refused = { said, since: this.#now, away: false };
  }

  /** One look, which never waits for the scheduler. */
  async look(): Promise<Found> {
    const outcome = this.#submit.take();
    if (outcome?.kind === "accepted") {
      const { id, cluster } = outcome.native;
      return this.#record({ kind: "submitted", native_id: id, scheduler_cluster: cluster });
    }
    if (outcome?.kind === "refused") this.refused(outcome.said);
    if (outcome?.kind === "doubt") await this.#unresolved(outcome.said);
    if (this.#submit.open) return OPEN;
    const finding = this.#find.take();
    if (finding === undefined) {
      if (this.#now >= this.#nextLook) this.#find.ask(() => this.provider.find(this.intended.marker, this.#lookup()));
      return OPEN;
    }
    return this.#judge(finding);
  }

  #lookup(): Lookup {
    return { since: Date.parse(this.intended.intended_at), ...(this.clusters.length === 0 ? {} : { clusters: this.clusters }) };
  }

  get #now(): number {
    return this.around.context.clock.monotonic();
  }

  async #judge({ found, complete, reached, said }: MarkerFinding): Promise<Found> {
    const [first] = found;
    if (first !== undefined && found.length === 1)
      return this.#record({ kind: "submitted", native_id: first.id, scheduler_cluster: first.cluster });
    const { name } = this.provider;
    if (first !== undefined) return this.#unresolved(`${found.length} jobs of ${name} have its name, ${this.intended.marker}`);
    const missing = complete ? "" : `, and not all of its sources answered: ${said ?? "no reason given"}`;
    if (this.#refused === null) return this.#unresolved(`${name} has no job of the name ${this.intended.marker}${missing}`);
    if (!reached) return this.#isAway(this.#refused.said);
    if (complete) this.#nones++;
    const { said: words, since, away } = this.#refused;
    const patient = !complete && this.#now - since >= this.times.refusedPatience;
    if (patient && !this.fenced) return this.#unresolved(`${name} has refused it (${words})${missing}`);
    if (patient || this.#nones >= 2) return { kind: "refused", said: words, away };
    const again = this.fenced ? this.times.refusedAgain : this.times.unfencedAgain;
    this.#nextLook = this.#now + (complete ? again : this.#backoff.next());
    this.#obstacle = `${name} has refused it (${words}); whether it has the job nevertheless is looked up once more${missing}`;
    return OPEN;
  }

  /** It has refused because it was not there, as far as anybody can tell, and may have taken the job all the same. */
  #isAway(said: string): Found {
    this.#refused = { said, since: this.#now, away: true };
    this.#nones = 0;
    this.#nextLook = this.#now + this.#backoff.next();
    this.#obstacle = `${this.provider.name} does not answer (${said}); once it does, and has no job of the name ${this.intended.marker}, it is submitted again`;
    return OPEN;
  }

  async #unresolved(message: string): Promise<Found> {
    this.#nextLook = this.#now + this.#backoff.next();
    this.#obstacle = `whether ${this.provider.name} has the job is not known, and it is looked up again and again: ${message}`;
    return this.#record({ kind: "unresolved", message: message.slice(0, 1_500) });
  }

  async #record(finding: SubmissionFinding): Promise<Found> {
    const record = await this.around.context.store.recordSubmission(this.around.fence, finding);
    return record.submission === "submitted" ? { kind: "submitted", record } : OPEN;
  }
}
