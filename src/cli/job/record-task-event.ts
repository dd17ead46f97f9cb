import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { clusterOfTask } from "../find-record.ts";
import { oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { TASK_EVENT, taskEventOf } from "../task-event-options.ts";
import { taskId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "Add to the timeline of a task",
  details: "From inside a job, emit task-event does the same without any connection.",
  positionals: { task: taskId },
  flags: { cluster: CLUSTER, ...TASK_EVENT },
  examples: [
    [
      "job record-task-event task_0123456789abcdef0123456789abcdef --event-type dataset_found --label dataset --summary 'found staged dataset' --path-ref /data/example_001",
      "say what was found, and where",
    ],
  ],
  async run({ flags, args, io, json, relay }) {
    const event = taskEventOf(io, flags);
    const cluster = await clusterOfTask({ io, relay }, flags.cluster, args.task);
    const recorded = await cluster.recordTaskEvent(args.task, event);
    if (json) await printJson(io.stdout, recorded);
    else await io.stdout.write(`${recorded.seq} ${oneLine(`${recorded.label}: ${recorded.summary}`)}\n`);
    return EXIT.ok;
  },
});
