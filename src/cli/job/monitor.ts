import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { PAGE } from "../page-options.ts";
import { printFields, printJson } from "../print/table.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";
import { statusFields } from "./status.ts";

export const verb = defineVerb({
  summary: "Show where a job stands, with a page of its events",
  details: "For programs that ask again and again: next_cursor of one answer is --cursor of the next. To follow a job live, use job watch.",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [
    ["job monitor job_0123456789abcdef0123456789abcdef --cursor 5 --json", "what has happened since event 5, and where it stands"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const monitor = await cluster.monitor(id, { cursor: flags.cursor, limit: flags.limit });
    if (json) await printJson(io.stdout, monitor);
    else {
      const events = monitor.events.map((event) => [`event ${event.seq}`, `${event.event_type}  ${event.message}`] as const);
      await printFields(io.stdout, [...statusFields(monitor, io.clock.now()), ...events, ["next cursor", String(monitor.next_cursor)]]);
    }
    return EXIT.ok;
  },
});
