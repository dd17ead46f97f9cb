import { hasEnded, markerOf, SCHEDULER_JOB_NAME, type SchedulerJob, type SchedulerStatus } from "../../../../domain/scheduler.ts";
import type { ExitRecord } from "../../../../execution/spool-records.ts";
import type { Notice } from "../../../../queue/store.ts";
import type { BatchJob, SubmitOutcome } from "../../../../scheduler/provider.ts";
import { Cancellation } from "../../allocation/cancellation.ts";
import type { Schedulers } from "../../allocation/schedulers.ts";
import { type Found, Submission } from "../../allocation/submission.ts";
import type { EngineAround } from "../engine.ts";

/** The scheduler that JARVIS-CD submits to. */
const PROVIDER = "slurm";

/** The name that a pipeline's job of the scheduler gets: the pipeline's own, with what makes it unique. */
export const pipelineMarker = (jobId: string, attempt: number, jobName: string | null): string =>
  markerOf(jobId, attempt, jobName !== null && SCHEDULER_JOB_NAME.test(jobName) ? jobName : null);

/** A pipeline's job of a scheduler, which JARVIS submits: on record before it can be there, looked up by its name after any doubt, followed, and canceled where that was asked for. */
export class PipelineAllocation {
  #record: SchedulerJob | null = null;
  #submission: Submission | null = null;
  #told = false;
  #unfollow: (() => void) | null = null;
  #status: SchedulerStatus | null = null;
  #endedAt: number | null = null;
  #absentAt: number | null = null;
  readonly #cancellation: Cancellation;

  constructor(
    private readonly around: EngineAround<"jarvis">,
    private readonly schedulers: Schedulers,
    private readonly marker: string,
  ) {
    const { context, directory, fence, wake } = around;
    const notice = (one: Notice) => context.store.ingest(fence, { deltas: [], truncations: [], emits: [], notices: [one] });
    this.#cancellation = new Cancellation({ context, directory, ring: wake, notice }, schedulers.times);
  }

  /** What the scheduler said last; null before that. */
  get status(): SchedulerStatus | null {
    return this.#status;
  }

  /** Milliseconds since the scheduler first said that its job has ended, or that nobody knows it; null while neither is so. */
  get over(): { readonly how: "ended" | "absent"; readonly ms: number } | null {
    const now = this.around.context.clock.monotonic();
    if (this.#endedAt !== null) return { how: "ended", ms: now - this.#endedAt };
    return this.#absentAt === null ? null : { how: "absent", ms: now - this.#absentAt };
  }

  /** Put on record that it may be there, before JARVIS can have submitted it. */
  async intend(): Promise<SchedulerJob> {
    if (this.#record !== null) return this.#record;
    const { context, fence } = this.around;
    const { items } = await context.store.schedulerJobs(fence.job_id, { cursor: fence.attempt, limit: 1 });
    const known = items.find(({ attempt }) => attempt === fence.attempt);
    this.#record = known ?? (await context.store.intendSubmission(fence, { provider: PROVIDER, marker: this.marker }));
    return this.#record;
  }

  /** JARVIS says under which id it is there. */
  async named(nativeId: string): Promise<void> {
    const record = await this.intend();
    const { context, fence } = this.around;
    if (record.submission === "intended" || record.submission === "unresolved")
      this.#record = await context.store.recordSubmission(fence, { kind: "submitted", native_id: nativeId, scheduler_cluster: null });
    this.#follow();
  }

  /** What became of the submission, once JARVIS' command has ended: it is JARVIS' word where there is one, and else looked up by its name. */
  async found(exit: ExitRecord, nativeId: string | null, said: string): Promise<Found> {
    if (nativeId !== null) await this.named(nativeId);
    const record = await this.intend();
    if (record.submission === "submitted") {
      this.#follow();
      return { kind: "submitted", record };
    }
    if (record.submission === "refused") return { kind: "refused", said };
    const { context, fence, wake } = this.around;
    const provider = this.schedulers.providerOf(record);
    const outcome: SubmitOutcome = { kind: exit.outcome.reason === "exit_nonzero" ? "refused" : "doubt", said };
    const jarvis = { name: provider.name, submit: async () => outcome, find: provider.find.bind(provider) };
    // What JARVIS has submitted runs, whatever is written down here meanwhile.
    this.#submission ??= new Submission({ context, fence, ring: wake }, jarvis, record, [], this.schedulers.times, false);
    // JARVIS has run the submit command; only its word is handed on, once.
    if (!this.#told) this.#submission.submit({} as BatchJob);
    this.#told = true;
    const found = await this.#submission.look();
    if (found.kind === "submitted") {
      this.#record = found.record;
      this.#follow();
    }
    return found;
  }

  /** Nothing of that name is there. */
  async refused(): Promise<void> {
    const { context, fence } = this.around;
    const record = await this.intend();
    if (record.submission === "intended" || record.submission === "unresolved")
      this.#record = await context.store.recordSubmission(fence, { kind: "refused" });
  }

  /** Have the scheduler end it. One look, which never waits for it. */
  async cancel(): Promise<void> {
    const record = await this.intend();
    await this.#cancellation.look(this.schedulers.providerOf(record), record, false);
  }

  close(): void {
    this.#unfollow?.();
    this.#unfollow = null;
  }

  #follow(): void {
    const { clock } = this.around.context;
    this.#unfollow ??= this.schedulers.follow(this.#record!, (status) => {
      const before = this.#status?.phase;
      this.#status = status;
      this.#endedAt = hasEnded(status.phase) ? (this.#endedAt ?? clock.monotonic()) : null;
      this.#absentAt = status.record_found === false ? (this.#absentAt ?? clock.monotonic()) : null;
      if (status.phase !== before) this.around.wake();
    });
  }
}
