import { isRelayError } from "../../../domain/errors.ts";
import type { CancellationRequest, Outcome } from "../../../domain/job.ts";
import { hasEnded, type SchedulerJob, type SchedulerStatus } from "../../../domain/scheduler.ts";
import { readExit, readStart, voidAttempt } from "../../../execution/attempt-dir.ts";
import { attemptExit, isClaimOf } from "../../../execution/exit-record.ts";
import { CANNOT_RUN, type ExitRecord, type StartRecord } from "../../../execution/spool-records.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";
import { AGAIN, type AttemptHost, type Beginning, claimed, type HostedAttempt, OVER, WAITS } from "../attempt-host.ts";
import { NOBODY, recordLost, type ShimClaim } from "../lost-shim.ts";
import { isPassing, messageOf } from "../patience.ts";
import { keptMaxOf } from "../recovered.ts";
import { settleUnstarted } from "../settlement.ts";
import { spoolAway } from "../shared-spools.ts";
import { claimDamage } from "../spool-damage.ts";
import { batchJob, requestOf, scriptOf, writeBatch } from "./batch.ts";
import { Cancellation } from "./cancellation.ts";
import { Coming, concluded } from "./conclusion.ts";
import { leave } from "./leave.ts";
import { refusalIn, remembering } from "./refusal.ts";
import type { Schedulers } from "./schedulers.ts";
import { type Found, Submission } from "./submission.ts";
import type { SubmitTurn } from "./submit-turns.ts";
import { awaitedRecord, batchWords, besidesOf, endedAs, endedFor, saidOf } from "./words.ts";

type Refusal = Extract<Found, { kind: "refused" }>;

/**
 * An attempt in an allocation of a scheduler (docs/schedulers.md). Its shim is on another host, so its directory tells what happened there, and the scheduler
 * whether more may come. No look waits for a command of the scheduler's.
 */
export class AllocationHost implements AttemptHost {
  readonly tellsDelay = false;
  readonly launchFailure = null;
  /** Undefined until it was read. */
  #record: SchedulerJob | null | undefined;
  #provider: SchedulerProvider | null = null;
  #submission: Submission | null = null;
  /** Held from before the submission until its command has ended. */
  #turn: SubmitTurn | null = null;
  #status: SchedulerStatus | null = null;
  /** When the scheduler first said that its job has ended, and nothing else since. */
  #endedAt: number | null = null;
  /** When every source first said that it knows no such job, and nothing else since. */
  #absentAt: number | null = null;
  #came: Coming | null = null;
  #unfollow: (() => void) | null = null;
  #obstacle: string | null = null;
  readonly #cancellation: Cancellation;
  readonly #keptMax: number;

  constructor(
    private readonly around: HostedAttempt,
    private readonly schedulers: Schedulers,
  ) {
    const { context, mode, directory } = around;
    this.#cancellation = new Cancellation(around, schedulers.times);
    this.#keptMax = keptMaxOf(context.limits, mode === "new" ? null : directory);
  }

  get obstacle(): string | null {
    if (this.#turn?.granted === false) return "it waits for other submissions";
    return this.#obstacle ?? this.#cancellation.obstacle ?? this.#submission?.obstacle ?? null;
  }

  async start(): Promise<Beginning> {
    const { directory, attempt, mode } = this.around;
    this.#obstacle = this.#away();
    if (this.#obstacle !== null) return WAITS;
    const record = await this.#known();
    const start = readStart(directory);
    if (attempt.state === "running") return this.#goOn(start);
    if (start === "torn") return claimed(NOBODY);
    if (start?.claimed_by === "shim") {
      await this.#foundBy(start);
      return claimed({ ...NOBODY, shim: start.shim, understood: true });
    }
    if (record === null && (mode !== "new" || start !== null || this.around.canceling())) return this.#void();
    if (record === null) {
      this.#turn ??= this.schedulers.submitTurns.take(() => this.around.ring());
      return this.#turn.granted ? this.#submit() : WAITS;
    }
    if (start !== null) return this.#endWithout(record, start.reason);
    // Where it works on this host's own file systems, it is sooner than a look.
    this.around.watch();
    return this.#waiting();
  }

  /** Why its directory tells nothing, and nothing is decided; null where it does, or somebody has asked for its end. */
  #away(): string | null {
    const { context, directory } = this.around;
    return this.around.canceling() ? null : spoolAway(directory, context.spoolDir);
  }

  /** What the queue has on record of its submission; null where none was intended. */
  async #known(): Promise<SchedulerJob | null> {
    const { context, fence } = this.around;
    if (this.#record === undefined) {
      const { items } = await context.store.schedulerJobs(fence.job_id, { cursor: fence.attempt, limit: 1 });
      this.#record = items.find(({ attempt }) => attempt === fence.attempt) ?? null;
    }
    return this.#record;
  }

  /** The provider of what is on record. */
  #providerOf(record: SchedulerJob): SchedulerProvider {
    this.#provider ??= this.schedulers.providerOf(record);
    return this.#provider;
  }

  /** Steps 2 to 4: what is thrown before the intention is recorded has submitted nothing. */
  async #submit(): Promise<Beginning> {
    const { context, job, fence } = this.around;
    const request = requestOf(job);
    let prepared: Awaited<ReturnType<typeof writeBatch>>;
    try {
      this.#provider = await this.schedulers.provider(request.provider);
      prepared = await writeBatch(this.around, this.#provider);
    } catch (error) {
      if (!isRelayError(error) || isPassing(error)) throw error;
      return this.#refuse(error.message);
    }
    const { marker, workdir } = prepared;
    const record = await context.store.intendSubmission(fence, { provider: this.#provider.name, marker });
    this.#record = record;
    this.#submissionOf(this.#provider, record).submit(batchJob(this.around, marker, workdir));
    return WAITS;
  }

  #submissionOf(provider: SchedulerProvider, record: SchedulerJob): Submission {
    if (this.#submission !== null) return this.#submission;
    const { job, directory } = this.around;
    const clusters = provider.clusters(requestOf(job), scriptOf(job));
    this.#submission = new Submission(this.around, remembering(provider, directory), record, clusters, this.schedulers.times);
    const said = refusalIn(directory);
    if (said !== null) this.#submission.refused(said);
    return this.#submission;
  }

  /** Nobody has claimed it yet, and it is at the scheduler, or may be. */
  async #waiting(): Promise<Beginning> {
    const found = await this.#look();
    const record = this.#record!;
    if (found !== null) return this.#refused(record, found);
    if (record.submission !== "submitted") {
      if (!this.around.canceling() || this.#submission?.underWay === true) return WAITS;
      const message = `canceled; whether ${record.provider} has the job was never known: one of the name ${record.marker} may be left there, and would start nothing`;
      return this.#endWithout(record, message);
    }
    const request = await this.#cancelRequest();
    if (request !== null && !request.cancel_scheduler) return (await this.#left()) ? OVER : AGAIN;
    // Who wins start.json knows that nothing has run; where the scheduler itself has not been heard, its job may be there again, and is waited for.
    const definite = request !== null || this.#status?.active_record_found === false || this.#status?.exit_code === CANNOT_RUN;
    if (this.#isGone(definite ? 0 : this.schedulers.times.lag)) return this.#endWithout(record, this.#unstartedWords());
    this.#obstacle = this.#absence();
    if (this.#isAbsent(this.schedulers.times.vanished))
      return this.#endWithout(record, `${record.provider} knows nothing of ${record.native_id} any more, and nothing of it had started`);
    if (request !== null) {
      // No source knows it, and nothing of it can start once start.json is won.
      if (this.#absentAt !== null) return this.#endWithout(record, `canceled; ${this.#absence()}`);
      this.#cancellation.write();
      await this.#cancellation.look(this.#providerOf(record), record, false);
    }
    return WAITS;
  }

  /** Take another look at the submission and follow what is submitted. What there is to say where there is no such job, else null. */
  async #look(): Promise<Refusal | null> {
    let record = this.#record!;
    const provider = this.#providerOf(record);
    if (record.submission === "intended" || record.submission === "unresolved") {
      const submission = this.#submissionOf(provider, record);
      const found = await submission.look();
      if (!submission.underWay) this.#turn?.release();
      if (found.kind === "refused") return found;
      if (found.kind === "open") return null;
      record = found.record;
      this.#record = record;
    }
    this.#unfollow ??= this.schedulers.follow(record, (status) => this.#said(status));
    return null;
  }

  #said(status: SchedulerStatus): void {
    const before = this.#status;
    this.#status = status;
    if (!hasEnded(status.phase)) this.#endedAt = null;
    else this.#endedAt ??= this.#now;
    if (status.record_found !== false) this.#absentAt = null;
    else this.#absentAt ??= this.#now;
    if (before?.phase !== status.phase) this.around.ring();
  }

  get #now(): number {
    return this.around.context.clock.monotonic();
  }

  /** Whether the scheduler has said for so many milliseconds that its job has ended. */
  #isGone(ms: number): boolean {
    return this.#endedAt !== null && this.#now - this.#endedAt >= ms;
  }

  /** Whether every source has said for so many milliseconds that it knows no such job. */
  #isAbsent(ms: number): boolean {
    return this.#absentAt !== null && this.#now - this.#absentAt >= ms;
  }

  /** That no source knows the job, which is no end; null where one does, or not all have said. */
  #absence(): string | null {
    const { provider, native_id } = this.#record ?? {};
    return this.#absentAt === null ? null : `${provider} knows nothing of ${native_id}, and how it ended cannot be found out`;
  }

  /** A shim has claimed it, and says in which allocation: no doubt is left about its submission. */
  async #foundBy({ allocation }: Extract<StartRecord, { claimed_by: "shim" }>): Promise<void> {
    const record = await this.#known();
    if (record === null || allocation === undefined) return;
    if (record.submission !== "intended" && record.submission !== "unresolved") return;
    const { context, job, fence } = this.around;
    const provider = this.#providerOf(record);
    // The cluster is part of its name only where the request has gone to one that it names.
    const federated = provider.clusters(requestOf(job), scriptOf(job)).length > 0;
    const finding = {
      kind: "submitted",
      native_id: allocation.native_id,
      scheduler_cluster: federated ? allocation.cluster : null,
    } as const;
    this.#record = await context.store.recordSubmission(fence, finding);
    this.#submission = null;
  }

  async #goOn(start: StartRecord | "torn" | null): Promise<Beginning> {
    const { attempt, directory } = this.around;
    if (start !== null && start !== "torn" && start.claimed_by === "shim") await this.#foundBy(start);
    const same = isClaimOf(start, attempt.shim);
    if (!same) await this.around.notice(claimDamage(directory, start));
    return claimed({ ...NOBODY, shim: attempt.shim, process: attempt.process, startedAt: attempt.started_at, understood: same }, true);
  }

  /** Nothing of it was intended, so nothing of it can be anywhere. */
  async #void(): Promise<Beginning> {
    const { context, fence, directory } = this.around;
    const reason = "never submitted";
    if (!voidAttempt(directory, reason)) return AGAIN;
    await context.store.voidAttempt(fence, reason);
    return OVER;
  }

  /** Win start.json, so that nothing can start any more, and end the attempt with these words; or find that a shim has. */
  async #endWithout(record: SchedulerJob, words: string): Promise<Beginning> {
    const { context, fence, directory } = this.around;
    if (!voidAttempt(directory, words.slice(0, 2_000))) return AGAIN;
    const canceled = this.around.canceling() || this.#endedFor() === "canceled";
    if (!canceled && (record.submission === "intended" || record.submission === "unresolved"))
      await context.store.recordSubmission(fence, { kind: "refused" });
    await settleUnstarted(context, fence, canceled ? "canceled" : "spawn_failed", words);
    return OVER;
  }

  /** There is no job of the scheduler's. Where that was not there, it goes back into the queue, once nothing of it can start. */
  async #refused(record: SchedulerJob, { said, away }: Refusal): Promise<Beginning> {
    if (away !== true || this.around.canceling()) return this.#endWithout(record, `${record.provider} refused it: ${said}`);
    const { context, fence, directory } = this.around;
    const reason = `${record.provider} did not answer: ${said}`.slice(0, 2_000);
    if (!voidAttempt(directory, reason)) return AGAIN;
    await context.store.recordSubmission(fence, { kind: "refused" });
    await context.store.voidAttempt(fence, reason);
    return OVER;
  }

  #endedFor(): ReturnType<typeof endedFor> {
    return endedFor(this.#status, requestOf(this.around.job).time_limit_seconds);
  }

  #unstartedWords(): string {
    const batch = batchWords(this.around.directory);
    const said = this.#status === null ? "" : `: ${saidOf(this.#status)}`;
    return `the scheduler's job ended without starting the command${said}${batch === null ? "" : `; its script said: ${batch}`}`;
  }

  async #refuse(message: string): Promise<Beginning> {
    const { context, fence } = this.around;
    await settleUnstarted(context, fence, this.around.canceling() ? "canceled" : "spawn_failed", message);
    return OVER;
  }

  /** What was intended may start whatever is in the way here. */
  async cannotStart(cause: unknown): Promise<Beginning> {
    if (this.around.attempt.state === "running") return this.#goOn("torn");
    if (this.#record === null) return this.#refuse(`it could not be submitted: ${messageOf(cause)}`);
    this.#obstacle = messageOf(cause);
    return WAITS;
  }

  lives(): boolean {
    return [null, "torn"].includes(readExit(this.around.directory) as null | "torn");
  }

  started(): void {
    this.#obstacle = null;
  }

  mayRun(): boolean {
    return this.#status === null || !hasEnded(this.#status.phase);
  }

  async end(claim: ShimClaim): Promise<ExitRecord | "over" | null> {
    this.#obstacle = null;
    if ((await this.#known()) !== null) await this.#look();
    this.#obstacle = this.#away();
    if (this.#obstacle !== null) return null;
    const exit = this.#read(claim);
    if (exit !== null && exit !== "torn") return this.#concluded(exit);
    if (this.around.canceling() && (await this.#endedWithoutScheduler())) return "over";
    this.#obstacle = this.#absence() ?? (this.#endedAt === null ? null : awaitedRecord(this.#status!));
    const absent = this.around.canceling() && this.#isAbsent(this.schedulers.times.lag);
    if (!this.#isGone(this.schedulers.times.lag) && !absent) return this.#unsubmitted(claim);
    // Looked at again after the scheduler has said so long that nothing runs.
    const last = this.#read(claim);
    if (last !== null && last !== "torn") return this.#concluded(last);
    return recordLost(this.#lost(claim), this.#lostOutcome());
  }

  #read({ shim, understood }: ShimClaim): ExitRecord | "torn" | null {
    return attemptExit(this.around.directory, { shim, understood, keptMax: this.#keptMax });
  }

  /** See `concluded`; null while something is waited for. */
  async #concluded(exit: ExitRecord): Promise<ExitRecord | null> {
    this.#came ??= new Coming(this.around.context.clock);
    const { directory, job } = this.around;
    const found = concluded(exit, {
      ...{ directory, came: this.#came, times: this.schedulers.times, record: this.#record ?? null, status: this.#status },
      ...{ request: await this.#cancelRequest(), limitSeconds: requestOf(job).time_limit_seconds },
    });
    if (!("obstacle" in found)) return found;
    this.#obstacle = found.obstacle;
    return null;
  }

  /** A cancel that leaves the scheduler's job alone. True when that has ended the attempt. */
  async #endedWithoutScheduler(): Promise<boolean> {
    const request = await this.#cancelRequest();
    if (request === null || request.cancel_scheduler || this.#record?.submission !== "submitted") return false;
    return this.#left();
  }

  /** Claimed by whom nobody can tell, of a submission that is in doubt: only a cancel ends that. */
  async #unsubmitted(claim: ShimClaim): Promise<ExitRecord | null> {
    const record = this.#record;
    if (!this.around.canceling() || record === undefined || record?.submission === "submitted" || this.#submission?.underWay === true)
      return null;
    const left = record === null ? "" : `; a job of the name ${record.marker} may be left at ${record.provider}`;
    return recordLost(this.#lost(claim), endedAs("canceled", `canceled; start.json does not say which shim ran the command${left}`));
  }

  #lost(claim: ShimClaim) {
    const { context, fence, directory } = this.around;
    return { context, fence, directory, claim, keptMax: this.#keptMax };
  }

  #lostOutcome(): Outcome {
    const said = this.#absence() ?? (this.#status === null ? "the scheduler's job has ended" : saidOf(this.#status));
    const why = this.#endedFor();
    if (this.around.canceling()) return endedAs("canceled", `canceled; its shim left no record: ${said}`);
    if (why !== null)
      return endedAs(
        why,
        `${why === "timeout" ? "ended after its time limit" : "canceled at the scheduler"}; its shim left no record: ${said}`,
      );
    return endedAs(
      "outcome_unknown",
      `its shim left no record, so nobody knows how the command ended: ${said}${besidesOf(this.around.directory)}`,
    );
  }

  async askToEnd(_claim: ShimClaim, write: boolean): Promise<void> {
    const record = this.#record;
    if (record?.submission !== "submitted" || this.#isGone(0) || (await this.#cancelRequest())?.cancel_scheduler !== true) return;
    if (write) this.#cancellation.write();
    await this.#cancellation.look(this.#providerOf(record), record, true);
  }

  /** What was asked for; null before that. */
  async #cancelRequest(): Promise<CancellationRequest | null> {
    if (!this.around.canceling()) return null;
    return (await this.around.context.store.job(this.around.fence.job_id)).cancellation_request;
  }

  /** End the attempt and leave the scheduler's job. False where somebody has asked for that, too, meanwhile. */
  async #left(): Promise<boolean> {
    await this.around.takeIn();
    return leave(this.around, this.#record!);
  }

  close(): void {
    this.#turn?.release();
    this.#unfollow?.();
    this.#unfollow = null;
  }
}
