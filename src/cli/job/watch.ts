import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import { jobEvents } from "../follow/job-events.ts";
import { withLifeSigns } from "../follow/life-signs.ts";
import { Reconnect } from "../follow/reconnect.ts";
import { WatchOutput } from "../follow/watch-output.ts";
import { liveView, plainView } from "../follow/watch-views.ts";
import { hintAtLog } from "../follow/written-elsewhere.ts";
import { jsonText } from "../print/safe-text.ts";
import { overwrites } from "../print/style.ts";
import { jobId, whole } from "../values.ts";
import { defineVerb, ignored, optionOr } from "../verb.ts";

export const verb = defineVerb({
  summary: "Follow a job until it ends",
  details:
    "Shows events, progress and output as they come: live on a terminal, as lines elsewhere, as one JSON event a line with --json. Goes on " +
    "through restarts of worker and daemon. Ctrl-C detaches and cancels nothing. Ends with 0 when the job succeeded, with 10 when it did not.",
  positionals: { job: jobId },
  flags: {
    cluster: CLUSTER,
    cursor: optionOr(whole(1, Number.MAX_SAFE_INTEGER), 1, "Number of the first event to show"),
    limit: ignored("events come as they are committed, not in pages"),
  },
  examples: [
    ["job watch job_0123456789abcdef0123456789abcdef", "from the beginning to the end"],
    ["job watch job_0123456789abcdef0123456789abcdef --cursor 120 --json", "go on after event 119, for a program"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    // What cannot be reached or found at all is said at once; only what once worked is waited for.
    const status = await cluster.status(id);
    let next = flags.cursor;
    const farewell = () =>
      `detached; the job goes on. Come back with: clio-relay job watch ${id} --cluster ${cluster.name} --cursor ${next}`;
    return interruptible(io, farewell, async (signal) => {
      const live = overwrites(io.stdout, io.env);
      const view = json ? null : live ? liveView(io, status) : plainView(io);
      const reconnect = new Reconnect(view?.notices ?? io.stderr, io.clock, signal, view?.way);
      await reconnect.alive();
      return withLifeSigns(cluster, reconnect, async () => {
        const events = jobEvents(cluster, id, flags.cursor, reconnect, signal);
        const output = view === null ? null : new WatchOutput(cluster, id, reconnect, view, live ? "overwrite" : "end-lines");
        try {
          for await (const event of events) {
            if (view === null) await io.stdout.write(`${jsonText(event)}\n`);
            else if (!(await output!.take(event))) await view.event(event);
            next = output?.resumeAt(event.seq + 1) ?? event.seq + 1;
          }
          const job = await reconnect.persist(() => cluster.job(id));
          await view?.end(job);
          if (view !== null) await hintAtLog(view.notices, cluster, job);
          return job.state === "succeeded" ? EXIT.ok : EXIT.remoteFailed;
        } finally {
          await output?.showOpen();
          await view?.close();
        }
      });
    });
  },
});
