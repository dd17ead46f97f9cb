import { CLUSTER } from "../cluster-option.ts";
import { clusterOfTask } from "../find-record.ts";
import { noneFrom, PAGE, restOf } from "../page-options.ts";
import { printPage } from "../print/page.ts";
import { taskId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the timeline of a task",
  positionals: { task: taskId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [["job task-events task_0123456789abcdef0123456789abcdef --cursor 1", "from the beginning"]],
  async run({ flags, args, io, json, relay }) {
    const page = await (await clusterOfTask({ io, relay }, flags.cluster, args.task)).taskEvents(args.task, {
      cursor: flags.cursor,
      limit: flags.limit,
    });
    return printPage({ io, json }, page, {
      header: ["SEQ", "AT", "TYPE", "STATUS", "LABEL", "SUMMARY"],
      rows: ({ instant }) =>
        page.events.map((event) => [event.seq, instant(event.created_at), event.event_type, event.status, event.label, event.summary]),
      none: noneFrom(flags.cursor, "its timeline is empty"),
      notes: [restOf(page)],
    });
  },
});
