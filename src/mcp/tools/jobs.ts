import * as v from "valibot";
import { JOB_STATES, JobKind, JobState } from "../../domain/job.ts";
import { Count, Id, Sequence } from "../../domain/primitives.ts";
import { asked } from "../asked.ts";
import { defineTool, ENDS, READS, type Tool } from "../tool.ts";
import { fitting, JobView, jobView, StatusView, SummaryView, summaryView, TRUNCATED } from "../views.ts";
import { status, WaitedView, waited } from "../wait.ts";
import { CLUSTER, JOB, LIMIT, logLimit, PAGED, POLL, said, waitSeconds } from "./arguments.ts";
import { observe } from "./observe.ts";

const states = v.optional(said(v.pipe(v.array(JobState), v.maxLength(JOB_STATES.length)), "only jobs in one of these"));
const kind = v.optional(said(JobKind, "only jobs of this kind"));

const relayStatus = defineTool({
  name: "relay_status",
  title: "Where a job stands",
  profile: "user",
  description:
    "Says where a job stands now: state, place in the queue, what keeps it from starting, latest progress, how much it wrote, how it ended. Does not wait; relay_wait does. `terminal` says that nothing of it will change any more.",
  hints: READS,
  clusters: "all",
  input: v.strictObject(JOB),
  output: v.object(StatusView),
  async run({ job_id, ...where }, call) {
    return status(await call.clusters.ofJob(job_id, where, call.signal), job_id, call.signal);
  },
});

const relayWait = defineTool({
  name: "relay_wait",
  title: "Wait until a job has ended",
  profile: "user",
  description:
    "Waits until a job has ended, and says how it stands then. When the time is over first, observation.outcome is observation_unknown: the job goes on, nothing was done to it, and `retry` is the call that goes on waiting. With include_logs the end of what it wrote comes along.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({
    ...JOB,
    timeout_seconds: waitSeconds(600),
    ...POLL,
    include_logs: v.optional(said(v.boolean(), "whether the end of what it wrote comes along"), false),
    log_limit: logLimit(8_192),
  }),
  output: WaitedView,
  async run({ job_id, cluster, route_revision, poll_seconds: _none, ...options }, call) {
    const place = await call.clusters.ofJob(job_id, { cluster, route_revision }, call.signal);
    return waited(place, job_id, options, call);
  },
});

const cancel = (name: string, profile: Tool["profile"]): Tool =>
  defineTool({
    name,
    title: "End a job",
    profile,
    description:
      "Ends a job and everything that it started. Answers when that is on record; the worker ends the job after that, and relay_wait says when it has. What has ended already stays as it is. A job of a scheduler is left to it unless cancel_scheduler_job is true.",
    hints: ENDS,
    clusters: "all",
    input: v.strictObject({
      ...JOB,
      cancel_scheduler_job: v.optional(said(v.boolean(), "whether its job of a scheduler is to end, too"), false),
    }),
    output: v.object(JobView),
    async run({ job_id, cluster, route_revision, cancel_scheduler_job }, call) {
      const place = await call.clusters.ofJob(job_id, { cluster, route_revision }, call.signal);
      const worker = `the worker of ${place.entry.name}`;
      return jobView(place, await asked(worker, call.signal, (signal) => place.client.cancel(job_id, { cancel_scheduler_job }, signal)));
    },
  });

const listJobs = defineTool({
  name: "relay_list_jobs",
  title: "Recent jobs",
  profile: "user",
  description:
    "Lists the jobs of a cluster, newest first, whatever became of them. Go back further with before: next_before of the last answer, null where there is nothing older.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({
    ...CLUSTER,
    state: states,
    kind,
    before: v.optional(said(Sequence, "next_before of the page before")),
    limit: LIMIT,
  }),
  output: v.object({ cluster: Id, jobs: v.array(SummaryView), next_before: v.nullable(v.number()), truncated: TRUNCATED }),
  async run({ cluster, ...query }, call) {
    const { client, entry } = await call.clusters.named(cluster, call.signal);
    const options = Object.fromEntries(Object.entries({ ...query, inputs: false }).filter(([, value]) => value !== undefined));
    const { jobs, next_before } = await asked(`the worker of ${cluster}`, call.signal, (signal) => client.jobs({ ...options, signal }));
    const { items, truncated } = fitting(jobs);
    return {
      cluster: entry.name,
      jobs: items.map(summaryView),
      next_before: truncated ? items.at(-1)!.sequence : next_before,
      truncated,
    };
  },
});

const queueList = defineTool({
  name: "relay_queue_list",
  title: "The queue of a cluster",
  profile: "user",
  description:
    "Lists the queue of a cluster in the order of submission, jobs that have ended only with include_terminal. Filters apply inside a window over all jobs, so that a page may be empty while source_next_cursor is not null: go on from there.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({
    ...CLUSTER,
    state: states,
    kind,
    include_terminal: v.optional(said(v.boolean(), "with jobs that have ended"), false),
    ...PAGED,
  }),
  output: v.object({
    cluster: Id,
    jobs: v.array(SummaryView),
    count: Count,
    source_next_cursor: v.nullable(Sequence),
    source_total: Count,
    active_job_capacity: Count,
    truncated: TRUNCATED,
  }),
  async run({ cluster, state, kind: only, include_terminal, cursor, limit }, call) {
    const { client, entry } = await call.clusters.named(cluster, call.signal);
    const query = {
      include_terminal,
      cursor,
      limit,
      ...(state === undefined ? {} : { state }),
      ...(only === undefined ? {} : { kind: only }),
    };
    const page = await asked(`the worker of ${cluster}`, call.signal, (signal) => client.queue({ ...query, signal }));
    const { items, truncated } = fitting(page.jobs);
    return {
      cluster: entry.name,
      jobs: items.map(summaryView),
      count: items.length,
      source_next_cursor: truncated ? items.at(-1)!.sequence + 1 : page.source_next_cursor,
      source_total: page.source_total,
      active_job_capacity: page.active_job_capacity,
      truncated,
    };
  },
});

export const jobTools: readonly Tool[] = [
  relayStatus,
  relayWait,
  observe,
  listJobs,
  queueList,
  cancel("relay_cancel", "user"),
  cancel("relay_cancel_job", "admin"),
];
