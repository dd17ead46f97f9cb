import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Id, jsonBytes, Sequence, Sha256 } from "../../domain/primitives.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";
import { defineTool, READS, type Tool, type ToolCall } from "../tool.ts";
import { EventView, eventView, fitting, INLINE_BYTES, TRUNCATED } from "../views.ts";
import { CLUSTER, JOB, PAGED } from "./arguments.ts";

/** A record as the worker has it. Its schema is in docs/openapi.json. */
const Whole = v.record(v.string(), v.unknown());
const OF = { cluster: Id, route_revision: Sha256 };

/** @throws RelayError payload_too_large where it is more than one answer holds */
function inline<T extends object>(record: T, what: string): Record<string, unknown> {
  const bytes = jsonBytes(record);
  if (bytes <= INLINE_BYTES) return record as Record<string, unknown>;
  throw new RelayError("payload_too_large", `${what} takes ${bytes} bytes, and an answer holds ${INLINE_BYTES}`, {
    size_bytes: bytes,
    max_inline_bytes: INLINE_BYTES,
  });
}

/** Ask the cluster that has a job. */
async function ofJob<T>(
  args: { readonly job_id: string; readonly cluster?: string | undefined; readonly route_revision?: string | undefined },
  call: ToolCall,
  ask: (place: Place, signal: AbortSignal) => Promise<T>,
): Promise<{ place: Place; answer: T }> {
  const place = await call.clusters.ofJob(args.job_id, args, call.signal);
  return { place, answer: await asked(`the worker of ${place.entry.name}`, call.signal, (signal) => ask(place, signal)) };
}

const of = ({ entry, route_revision }: Place) => ({ cluster: entry.name, route_revision });

export const recordTools: readonly Tool[] = [
  defineTool({
    name: "relay_get_job",
    title: "A job's record",
    profile: "admin",
    description: "Gives the whole record of a job, what it was submitted with included. relay_status says how it stands in fewer words.",
    hints: READS,
    clusters: "all",
    input: v.strictObject(JOB),
    output: v.object({ ...OF, job: Whole }),
    async run(args, call) {
      const { place, answer } = await ofJob(args, call, ({ client }, signal) => client.job(args.job_id, signal));
      return { ...of(place), job: inline(answer, "the job") };
    },
  }),
  defineTool({
    name: "relay_get_job_status",
    title: "A job's status document",
    profile: "admin",
    description:
      "Gives the whole status document of a job: record, current attempt, place in the queue, inputs, progress, logs, transform.",
    hints: READS,
    clusters: "all",
    input: v.strictObject(JOB),
    output: v.object({ ...OF, status: Whole }),
    async run(args, call) {
      const { place, answer } = await ofJob(args, call, ({ client }, signal) => client.status(args.job_id, signal));
      return { ...of(place), status: inline(answer, "the status") };
    },
  }),
  defineTool({
    name: "relay_monitor_job",
    title: "A job's status with a page of events",
    profile: "admin",
    description: "Gives the status document of a job with the events from cursor on. Does not wait.",
    hints: READS,
    clusters: "all",
    input: v.strictObject({ ...JOB, ...PAGED }),
    output: v.object({ ...OF, status: Whole, events: v.array(EventView), next_cursor: Sequence, truncated: TRUNCATED }),
    async run(args, call) {
      const { cursor, limit } = args;
      const { place, answer } = await ofJob(args, call, ({ client }, signal) => client.monitor(args.job_id, { cursor, limit, signal }));
      const { events, next_cursor, ...status } = answer;
      const shown = inline(status, "the status");
      const { items, truncated } = fitting(events.map(eventView), jsonBytes(shown));
      return { ...of(place), status: shown, events: items, next_cursor: truncated ? items.at(-1)!.seq + 1 : next_cursor, truncated };
    },
  }),
  defineTool({
    name: "relay_watch_job_events",
    title: "A job's events",
    profile: "admin",
    description: "Lists the events of a job from cursor on, oldest first. Does not wait; come back with next_cursor.",
    hints: READS,
    clusters: "all",
    input: v.strictObject({ ...JOB, ...PAGED }),
    output: v.object({ ...OF, job_id: Id, events: v.array(EventView), next_cursor: Sequence, total: v.number(), truncated: TRUNCATED }),
    async run(args, call) {
      const { job_id, cursor, limit } = args;
      const { place, answer } = await ofJob(args, call, ({ client }, signal) => client.events(job_id, { cursor, limit, signal }));
      const { items, truncated } = fitting(answer.events.map(eventView));
      const next_cursor = truncated ? items.at(-1)!.seq + 1 : answer.next_cursor;
      return { ...of(place), job_id, events: items, next_cursor, total: answer.total, truncated };
    },
  }),
  defineTool({
    name: "relay_worker_status",
    title: "The worker of a cluster",
    profile: "admin",
    description:
      "Says how the worker of a cluster is: slots, what runs in them, what waits, the last error of a lane, where its files lie.",
    hints: READS,
    clusters: "all",
    input: v.strictObject(CLUSTER),
    output: v.object({ cluster: Id, workers: v.array(Whole), worker_count: v.number() }),
    async run({ cluster }, call) {
      const { client, entry } = await call.clusters.named(cluster, call.signal);
      const { workers, worker_count } = await asked(`the worker of ${cluster}`, call.signal, (signal) => client.workers(signal));
      return { cluster: entry.name, workers: fitting(workers).items, worker_count };
    },
  }),
];
