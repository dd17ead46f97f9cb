import type { Row } from "../rows.ts";
import { count, words } from "../status.ts";
import { phaseOf } from "./states.ts";
import { jobsFrom } from "./xml.ts";

/** Jobs that wait, run or are suspended, of a user, or everybody's (`*`); `-r` for their whole names and the queues that they ask for. */
export const qstatCommand = (user: string): readonly [string, ...string[]] => ["qstat", "-xml", "-r", "-s", "a", "-u", user];

/** What `qstat -xml -r` printed, with TZ=UTC in its environment. Null where it is no such document, or not all of it. */
export function readQstat(text: string): Row[] | null {
  return jobsFrom(text)?.flatMap((job) => readJob(job) ?? []) ?? null;
}

function readJob(of: (element: string) => string | undefined): Row | null {
  const raw = of("JB_job_number") ?? "";
  if (!/^\d{1,10}$/.test(raw)) return null;
  const state = of("state") ?? "";
  const phase = phaseOf(state);
  const [queue, host] = (of("queue_name") ?? "").split("@", 2);
  const elements = of("tasks") ?? "";
  const name = of("full_job_name") ?? of("JB_name") ?? "";
  return {
    raw,
    shown: elements === "" ? raw : `${raw}_${/^\d+$/.test(elements) && phase !== "pending" ? elements : `[${elements}]`}`,
    name,
    phase,
    queue: queue || of("hard_req_queue") || "",
    submitted: of("JB_submission_time") ?? "",
    answers: {
      phase,
      raw_state: words(state),
      name: words(name),
      partition: words(queue) ?? words(of("hard_req_queue")),
      account: words(of("JB_project")),
      user: words(of("JB_owner")),
      nodes: words(host),
      cpus: count(of("slots")),
      submit_time: instant(of("JB_submission_time")),
      start_time: instant(of("JAT_start_time")),
      time_limit_seconds: count(of("hard_request:h_rt")),
    },
  };
}

/** `2026-11-30T16:12:31`, by some releases with a part of a second. */
function instant(text: string | undefined): string | null {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?$/.test(text)) return null;
  const at = Date.parse(`${text.slice(0, 19)}Z`);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}
