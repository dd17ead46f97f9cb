import type { SchedulerStatus } from "../domain/scheduler.ts";
import { jobsIn } from "./elements.ts";
import type { Row, Rows } from "./rows.ts";

const NOTE =
  "approximate: by time of submission, among the jobs that this user may see; priorities, fair share and reservations are not known";

type Place = Pick<SchedulerStatus, "queue_position" | "jobs_ahead" | "queue_position_scope" | "queue_position_note">;

/** How many wait in the same partition and QOS and were submitted before, for each waiting row of all that there are. */
export class Places {
  readonly #ahead = new Map<Row, number>();

  constructor(rows: Rows) {
    // A job of a federation waits in several clusters under one number.
    const waiting = [
      ...new Map(rows.all.filter(({ phase }) => phase === "pending").map((row) => [`${row.raw} ${row.shown}`, row])).values(),
    ];
    for (const queue of Map.groupBy(waiting, ({ queue }) => queue).values()) {
      const inOrder = queue.toSorted((a, b) =>
        a.submitted < b.submitted ? -1 : a.submitted > b.submitted ? 1 : Number(a.raw) - Number(b.raw),
      );
      let ahead = 0;
      for (const row of inOrder) {
        this.#ahead.set(row, ahead);
        ahead += jobsIn(row);
      }
    }
  }

  of(row: Row): Place | null {
    const ahead = this.#ahead.get(row);
    if (ahead === undefined) return null;
    const { partition, qos } = row.answers;
    const scope = [partition == null ? null : `partition ${partition}`, qos == null ? null : `QOS ${qos}`].filter((part) => part !== null);
    // A job that names neither waits among all like it.
    const queue_position_scope = scope.length === 0 ? null : scope.join(", ");
    return { queue_position: ahead + 1, jobs_ahead: ahead, queue_position_scope, queue_position_note: NOTE };
  }
}
