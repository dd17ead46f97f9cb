import { PROGRESS, progressOf } from "../progress-options.ts";
import { defineVerb } from "../verb.ts";
import { emitReport } from "./emit-report.ts";

export const verb = defineVerb({
  summary: "Report progress from inside a job",
  details:
    "Appends a line to a file that the worker reads; needs no connection. Any program of the job may write such lines itself: JSON in a file below $CLIO_RELAY_EVENTS.",
  positionals: {},
  flags: PROGRESS,
  examples: [["emit progress --label epoch --current 3 --total 10", "three of ten epochs"]],
  run: ({ flags, io, json }) => emitReport(io, json, { type: "progress", ...progressOf(io, flags) }),
});
