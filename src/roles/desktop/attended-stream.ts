import type { AttendedEvent } from "../../api/desktop/link-views.ts";
import { waker } from "../../api/sse.ts";
import type { AttendedRun } from "./attended-run.ts";

/** Events for one client, until the work is over or the client leaves. */
export type Follow = (signal: AbortSignal) => AsyncGenerator<AttendedEvent>;

/**
 * @param began whether this client is the one who began: the questions are for it, and without it there is nobody to work for
 */
export const following =
  (run: AttendedRun, began: boolean): Follow =>
  (signal) =>
    follow(run, began, signal);

async function* follow(run: AttendedRun, began: boolean, signal: AbortSignal): AsyncGenerator<AttendedEvent> {
  const change = waker((listener) => run.subscribe(listener), signal);
  try {
    if (!began) yield { event: "joined", data: { requested_by: run.requestedBy } };
    for (let at = 0; !signal.aborted; ) {
      const event = run.at(at);
      if (event === null) return;
      if (event === undefined) await change.wait();
      else {
        at++;
        yield began || event.event !== "prompt" ? event : elsewhere(run.requestedBy, event.data.host);
      }
    }
  } finally {
    change.close();
    if (began) run.leave();
  }
}

const elsewhere = (requestedBy: string, host: string): AttendedEvent => ({
  event: "progress",
  data: { text: `${host} asks for something; it is to be answered where ${requestedBy} runs` },
});
