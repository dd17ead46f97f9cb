import type { Turns } from "../../../lib/waiting/turns.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";

/** A provider whose questions and orders about single jobs are run a few at a time. Submissions have turns of their own, and observations come one by one. */
export const inTurn = (provider: SchedulerProvider, turns: Turns): SchedulerProvider => ({
  name: provider.name,
  probe: () => provider.probe(),
  script: (request, text, lines) => provider.script(request, text, lines),
  submit: (job) => provider.submit(job),
  native: (text) => provider.native(text),
  clusters: (request, text) => provider.clusters(request, text),
  find: (marker, lookup) => turns.run(() => provider.find(marker, lookup)),
  observe: (jobs, look) => provider.observe(jobs, look),
  terminate: (job, marker) => turns.run(() => provider.terminate(job, marker)),
  cancel: (job, marker) => turns.run(() => provider.cancel(job, marker)),
});
