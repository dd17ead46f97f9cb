import type { WorkerServices } from "../../api/worker-services.ts";
import { isRelayError } from "../../domain/errors.ts";
import { openArtifact } from "../../execution/artifact-content.ts";
import type { Storage } from "./admission.ts";
import type { WorkerContext } from "./context.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { admitTo, kindsOf, pipelineInputs } from "./engines/engines.ts";
import { lastSaid } from "./engines/jarvis/last-said.ts";
import { jobPlace } from "./job-place.ts";
import { spoolLogs } from "./logs.ts";
import type { WorkerMetrics } from "./metrics.ts";
import { cancelOf, repairQueue } from "./unreadable.ts";

/** What the HTTP app needs of this worker. */
export function servicesOf(
  context: WorkerContext,
  storage: Storage,
  dispatcher: Dispatcher,
  draining: AbortSignal,
  status: WorkerServices["status"],
  metrics: WorkerMetrics,
): Omit<WorkerServices, "link" | "keys" | "inputs" | "metrics"> {
  const { cluster, version, clock, store, limits } = context;
  return {
    cluster,
    version,
    clock,
    store: { ...store, requestCancel: cancelOf(context, dispatcher) },
    activeJobsMax: limits.activeJobsMax,
    engines: kindsOf(context.engines),
    laneFor: (submission) => admitTo(context.engines, submission),
    pipelineInputs: (question) => pipelineInputs(context.engines, question),
    logs: spoolLogs(store, context),
    scheduler: context.schedulers,
    artifacts: {
      async open(artifact, range) {
        const file = await openArtifact(artifact, jobPlace(context, artifact.job_id));
        return file.stream(range);
      },
    },
    draining,
    async admit() {
      try {
        storage.admit();
      } catch (error) {
        metrics.refused(error);
        // Besides the client, whoever looks after the worker has to know.
        if (!isRelayError(error, "storage_admission_refused")) context.laneFailed("storage", error);
        throw error;
      }
    },
    workExpected: (lane) => dispatcher.expect(lane),
    obstacle: (job) => dispatcher.obstacle(job),
    jarvis: async (jobId) => dispatcher.run(jobId)?.jarvis ?? (await lastSaid(store, jobId)),
    status,
    audit: () => store.audit(),
    repair: () => repairQueue(context, dispatcher),
  };
}
