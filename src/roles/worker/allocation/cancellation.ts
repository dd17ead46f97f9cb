import type { NewEvent } from "../../../domain/event.ts";
import type { SchedulerJob } from "../../../domain/scheduler.ts";
import { writeCancel } from "../../../execution/attempt-dir.ts";
import { isErrno } from "../../../lib/files/atomic-file.ts";
import { Backoff } from "../../../lib/waiting/backoff.ts";
import { timestamp } from "../../../lib/waiting/clock.ts";
import type { CancelOutcome, SchedulerProvider } from "../../../scheduler/provider.ts";
import type { HostedAttempt } from "../attempt-host.ts";
import { Question } from "./question.ts";
import type { AllocationTimes } from "./times.ts";

type Way = "terminate" | "cancel";

/** What a cancellation has to know of its attempt. */
export type CancelingAttempt = Pick<HostedAttempt, "directory" | "ring" | "notice"> & {
  readonly context: Pick<HostedAttempt["context"], "clock"> & {
    readonly limits: Pick<HostedAttempt["context"]["limits"], "cancelGraceSeconds">;
  };
};

/** The end of an attempt's job of the scheduler, asked for until it comes: in order first, then by the scheduler's own cancel. */
export class Cancellation {
  readonly #question: Question<{ readonly way: Way; readonly outcome: CancelOutcome }>;
  readonly #backoff: Backoff;
  #written = false;
  /** When cancel.json was there for a shim that had claimed the attempt, and TERM was first sent. */
  #since: number | null = null;
  #terminated = false;
  #next = 0;
  #obstacle: string | null = null;

  constructor(
    private readonly around: CancelingAttempt,
    private readonly times: AllocationTimes,
  ) {
    this.#question = new Question(() => around.ring());
    this.#backoff = new Backoff(times.cancelFirst, times.cancelMost);
  }

  /** What the scheduler said against it; null where it has not. */
  get obstacle(): string | null {
    return this.#obstacle;
  }

  /** Make TERM to the shim a cancel. @throws the system's error where that cannot be written */
  write(): void {
    if (this.#written) return;
    try {
      writeCancel(this.around.directory, timestamp(this.around.context.clock));
    } catch (error) {
      // There is no directory to write it to, so there is no shim that would read it.
      if (!isErrno(error, "ENOENT", "ENOTDIR")) throw error;
    }
    this.#written = true;
  }

  /**
   * One look, which never waits for the scheduler.
   *
   * @param claimed whether a shim has claimed the attempt: then it may end its job in order
   */
  async look(provider: SchedulerProvider, { native_id, scheduler_cluster, marker }: SchedulerJob, claimed: boolean): Promise<void> {
    if (native_id === null) return;
    const answer = this.#question.take();
    if (answer !== undefined) await this.#answered(answer.way, answer.outcome, provider, native_id);
    const way = this.#way(claimed);
    if (this.#question.open || way === null) return;
    const native = { id: native_id, cluster: scheduler_cluster };
    this.#question.ask(async () => ({ way, outcome: await provider[way](native, marker) }));
  }

  get #now(): number {
    return this.around.context.clock.monotonic();
  }

  #way(claimed: boolean): Way | null {
    if (this.#now < this.#next) return null;
    if (!claimed) return "cancel";
    this.#since ??= this.#now;
    const graceMs = this.around.context.limits.cancelGraceSeconds * 1_000;
    if (this.#now - this.#since > graceMs + this.times.cancelMargin) return "cancel";
    return this.#terminated ? null : "terminate";
  }

  async #answered(way: Way, { kind, said }: CancelOutcome, { name }: SchedulerProvider, id: string): Promise<void> {
    const asked = kind === "asked";
    // Where it sends no signal, cancel.json alone has to do: the shim looks for it.
    if (way === "terminate" && kind !== "doubt") this.#terminated = true;
    else this.#next = this.#now + (asked ? this.times.cancelMost : this.#backoff.next());
    if (way === "terminate" && kind === "refused") return;
    this.#obstacle = asked ? null : `${name} does not ${way === "cancel" ? "cancel" : "signal"} ${id}: ${said}`;
    await this.around.notice({ about: `${way} ${id}`, event: eventOf(way, kind, said, name, id) });
  }
}

function eventOf(way: Way, kind: CancelOutcome["kind"], said: string, name: string, id: string): NewEvent {
  const payload = { scheduler: name, scheduler_job_id: id, said: said.slice(0, 1_000) };
  const what = way === "cancel" ? `end job ${id}` : `send TERM to the batch script of job ${id}`;
  if (kind === "asked") return { event_type: "scheduler.cancel_requested", message: `${name} was asked to ${what}.`, payload };
  const message = `${name} was asked to ${what}, and ${kind === "refused" ? "refused" : "may not have done so"}: ${said}`.slice(0, 2_000);
  return kind === "refused"
    ? { event_type: "scheduler.cancel_refused", level: "warning", message, payload }
    : { event_type: "scheduler.cancel_failed", level: "warning", message, payload };
}
