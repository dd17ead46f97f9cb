import { RelayError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { JobState } from "../../domain/job.ts";
import type { TaskState } from "../../domain/task.ts";
import { canTransition, isTerminal } from "../../domain/transitions.ts";
import type { Writing } from "./access.ts";
import { insertEvent } from "./event-rows.ts";
import { isReady } from "./job-index.ts";
import type { JobHead } from "./job-rows.ts";

const TASK_STATE: Readonly<Record<JobState, TaskState>> = {
  queued: "queued",
  leased: "queued",
  running: "running",
  succeeded: "succeeded",
  failed: "failed",
  canceled: "canceled",
};

/** The state that a job's tasks have while it is in a state of its own; one that stands for a scheduler's job goes by what that scheduler says. */
export const taskStateOf = (state: JobState): TaskState => TASK_STATE[state];

/**
 * Changes of one job within one write: its row, its events and its tasks' state. Assign to the row's members as needed, and `save` once at
 * the end.
 */
export class JobEdit<Row extends JobHead = JobHead> {
  readonly #before: JobHead;

  constructor(
    private readonly w: Writing,
    readonly row: Row,
  ) {
    this.#before = { ...row };
  }

  /** Append to the job's history; returns the event's seq. */
  event(event: NewEvent): number {
    const seq = this.row.next_seq++;
    insertEvent(this.w, this.row.sequence, seq, event);
    return seq;
  }

  /**
   * Change the state, with all that follows from it.
   *
   * @throws state_conflict when the transition table does not have the change
   */
  move(to: JobState): void {
    const { row, w } = this;
    const from = row.state;
    if (!canTransition(from, to)) {
      throw new RelayError("state_conflict", `job ${row.job_id} is ${from} and cannot become ${to}`, {
        job_id: row.job_id,
        state: from,
        to,
      });
    }
    row.state = to;
    row.updated_at = w.now;
    if (to !== "queued") row.not_before = null;
    if (to === "queued" || isTerminal(to)) row.leased_by = null;
    w.counts.moved(row.kind, from, to);
    if (taskStateOf(from) !== taskStateOf(to)) {
      w.sql.run(
        "UPDATE tasks SET state = ?1, updated_at = ?2 WHERE job = ?3 AND sequence NOT IN (SELECT task FROM scheduler_jobs WHERE job = ?3)",
        taskStateOf(to),
        w.now,
        row.sequence,
      );
    }
    w.touch("queue");
  }

  /** Write what has changed of the row, and wake whoever follows the job. */
  save(): void {
    const { row, w } = this;
    if (this.#changedBesidesSeq()) {
      w.sql.run(
        `UPDATE jobs SET state = ?, ready = ?, attempts = ?, voided_attempts = ?, next_seq = ?, updated_at = ?, leased_by = ?, not_before = ?,
           quarantine = ?, last_error = ?, outcome = ?, cancellation_request = ? WHERE sequence = ?`,
        row.state,
        isReady(row) ? 1 : 0,
        row.attempts,
        row.voided_attempts,
        row.next_seq,
        row.updated_at,
        row.leased_by,
        row.not_before,
        row.quarantine,
        row.last_error,
        row.outcome,
        row.cancellation_request,
        row.sequence,
      );
    } else if (row.next_seq !== this.#before.next_seq) {
      // No index holds next_seq, so this one leaves them all alone.
      w.sql.run("UPDATE jobs SET next_seq = ? WHERE sequence = ?", row.next_seq, row.sequence);
    }
    w.touch(`job:${row.job_id}`);
  }

  #changedBesidesSeq(): boolean {
    const { row } = this;
    const old = this.#before;
    return (
      row.state !== old.state ||
      row.attempts !== old.attempts ||
      row.voided_attempts !== old.voided_attempts ||
      row.updated_at !== old.updated_at ||
      row.leased_by !== old.leased_by ||
      row.not_before !== old.not_before ||
      row.quarantine !== old.quarantine ||
      row.last_error !== old.last_error ||
      row.outcome !== old.outcome ||
      row.cancellation_request !== old.cancellation_request
    );
  }
}
