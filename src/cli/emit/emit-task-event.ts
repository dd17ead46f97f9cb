import { TASK_EVENT, taskEventOf } from "../task-event-options.ts";
import { defineVerb } from "../verb.ts";
import { emitReport } from "./emit-report.ts";

export const verb = defineVerb({
  summary: "Add to the job's timeline from inside it",
  positionals: {},
  flags: TASK_EVENT,
  examples: [
    [
      "emit task-event --event-type dataset_found --label dataset --summary 'found staged dataset' --path-ref /data/example_001",
      "say what was found, and where",
    ],
  ],
  run: ({ flags, io, json }) => emitReport(io, json, { type: "task-event", ...taskEventOf(io, flags) }),
});
