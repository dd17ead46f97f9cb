import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { type SchedulerJob, SchedulerJobId, SchedulerName } from "../../domain/scheduler.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { SchedulerCanceled, SchedulerObserved } from "../../domain/views.ts";
import { json, type Operation, operation } from "../operation.ts";
import { parse } from "../request.ts";
import type { WorkerServices } from "../worker-services.ts";
import { requireScheduler } from "./submission.ts";

const ObserveQuery = v.strictObject({
  /** The cluster's own where it is left out. */
  provider: v.optional(SchedulerName),
});

const CancelBody = v.strictObject({
  /** Whichever has it where it is left out. */
  provider: v.optional(v.nullable(SchedulerName), null),
});

/** Jobs of the cluster's scheduler by its own ids. */
export const schedulerRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "get",
    path: "/scheduler/:id",
    id: "observeSchedulerJob",
    summary: "What the scheduler says of any of its jobs, at most 5 s old",
    query: ObserveQuery,
    answer: { kind: "json", schema: SchedulerObserved },
    errors: ["scheduler_unavailable", "scheduler_failed"],
    handler: async ({ param, query }) => {
      const id = parse(SchedulerJobId, param("id"), "id");
      const status = await requireScheduler(services, query.provider ?? null).observe(query.provider ?? null, id);
      const known = await services.store.schedulerJobOf(status.scheduler, id);
      // Ids are given out again; a name that was not given to it is another job's.
      const own = known !== null && (status.name === null || status.name === known.marker) ? known : null;
      return json({ ...status, job_id: own?.job_id ?? null, attempt: own?.attempt ?? null });
    },
  }),
  operation({
    method: "post",
    path: "/scheduler/:id/cancel",
    id: "cancelSchedulerJob",
    summary: "Ask for the end of a scheduler's job that belongs to a job of this queue, which is canceled with it where it has not ended",
    body: CancelBody,
    bodyOptional: true,
    answer: { kind: "json", schema: SchedulerCanceled },
    errors: ["resource_ownership_refused", "scheduler_unavailable", "scheduler_failed"],
    handler: async ({ param, body }) => {
      const id = parse(SchedulerJobId, param("id"), "id");
      const known = await services.store.schedulerJobOf(body.provider, id);
      if (known === null) {
        throw new RelayError("resource_ownership_refused", `no job of this queue is ${id} of ${body.provider ?? "its scheduler"}`, {
          scheduler_job_id: id,
          provider: body.provider,
        });
      }
      const disposition = known.ended_at === null ? await cancelKnown(services, known) : "terminal";
      const { state } = await services.store.job(known.job_id);
      const { provider: scheduler, job_id, attempt } = known;
      return json({ scheduler, scheduler_job_id: id, job_id, attempt, state, disposition });
    },
  }),
];

/** A job that has not ended is canceled as one; of one that has, the scheduler's is asked to end by itself. */
async function cancelKnown(services: WorkerServices, known: SchedulerJob): Promise<"cancel_requested"> {
  const { store } = services;
  const job = await store.job(known.job_id);
  if (!isTerminal(job.state) && job.attempts === known.attempt) {
    await store.requestCancel(known.job_id, { cancel_scheduler: true });
    return "cancel_requested";
  }
  const { kind, said } = await requireScheduler(services, known.provider).cancel(known);
  const about = { attempt: known.attempt, task_id: known.task_id, scheduler: known.provider, scheduler_job_id: known.native_id };
  const asked = kind === "asked";
  await store.appendEvents(known.job_id, [
    {
      event_type: asked ? "scheduler.cancel_requested" : kind === "refused" ? "scheduler.cancel_refused" : "scheduler.cancel_failed",
      level: asked ? "info" : "warning",
      message: asked
        ? `${known.provider} was asked to end ${known.native_id}.`
        : `${known.provider} does not end ${known.native_id}: ${said}`,
      payload: about,
    },
  ]);
  if (asked) return "cancel_requested";
  throw new RelayError("scheduler_failed", `${known.provider} does not end ${known.native_id}: ${said}`, { ...about, disposition: kind });
}
