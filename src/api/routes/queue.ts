import * as v from "valibot";
import { Endpoint } from "../../domain/endpoint.ts";
import { JOB_KINDS } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { looseText } from "../../domain/primitives.ts";
import { flag, whole } from "../../domain/query.ts";
import { Audit, QueueListing, Repair, WorkerList } from "../answers.ts";
import { ownName } from "../called.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";
import { StateFilter } from "./jobs.ts";

const QueueQuery = v.strictObject({
  cluster: v.optional(looseText(128)),
  state: StateFilter,
  kind: v.optional(v.picklist(JOB_KINDS)),
  include_terminal: v.optional(flag, "false"),
  cursor: v.optional(whole(1), "1"),
  limit: v.optional(whole(1, LIMITS.pageMax), String(LIMITS.pageDefault)),
  scan_limit: v.optional(whole(1, LIMITS.queueScanMax), String(LIMITS.queueScanDefault)),
});

/** The queue as a whole, and the workers on it. */
export const queueRoutes = (services: WorkerServices): Operation[] => [
  listRoute(services),
  ...workerRoutes(services),
  ...checkRoutes(services),
];

const listRoute = (services: WorkerServices): Operation =>
  operation({
    method: "get",
    path: "/queue",
    id: "listQueue",
    summary: "Jobs in the order of submission; filters apply inside the window",
    query: QueueQuery,
    queryRefusal: "queue_query_refused",
    answer: { kind: "json", schema: QueueListing },
    handler: async ({ c, query }) => {
      const states = query.state ?? (query.include_terminal ? undefined : (["queued", "leased", "running"] as const));
      const window = await services.store.queueWindow(
        {
          ...(states === undefined ? {} : { states }),
          ...(query.kind === undefined ? {} : { kind: query.kind }),
          ...(query.cluster === undefined ? {} : { cluster: ownName(c, services.cluster, query.cluster) }),
        },
        { cursor: query.cursor, limit: query.limit },
        query.scan_limit,
      );
      return json({
        jobs: window.jobs,
        count: window.jobs.length,
        source_cursor: query.cursor,
        source_limit: query.limit,
        source_next_cursor: window.next_cursor,
        source_total: window.total,
        source_total_semantics: "all_jobs",
        filters_apply_within_source_window: true,
        result_truncated: window.next_cursor !== null,
        scan_limit: query.scan_limit,
        scan_truncated: window.scan_truncated,
        active_job_capacity: services.activeJobsMax,
      });
    },
  });

const workerRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "get",
    path: "/workers",
    id: "listWorkers",
    summary: "The worker that serves this cluster",
    answer: { kind: "json", schema: WorkerList },
    handler: async () => json({ workers: [await services.status()], worker_count: 1 }),
  }),
  operation({
    method: "get",
    path: "/endpoints",
    id: "listEndpoints",
    summary: "The worker processes that this queue has had; every start of a worker is one",
    query: PageQuery,
    answer: { kind: "json", schema: pageOf("endpoints", Endpoint) },
    handler: async ({ query }) => {
      const { items, ...page } = await services.store.endpoints(query);
      return json({ endpoints: items, ...page });
    },
  }),
];

/** What is wrong with the queue's records. */
const checkRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "post",
    path: "/queue/audit",
    id: "auditQueue",
    summary: "Check the records of the whole queue; changes nothing",
    answer: { kind: "json", schema: Audit },
    handler: async () => json(await services.audit()),
  }),
  operation({
    method: "post",
    path: "/queue/repair",
    id: "repairQueue",
    summary: "Put right what an audit can prove",
    answer: { kind: "json", schema: Repair },
    handler: async () => json(await services.repair()),
  }),
];
