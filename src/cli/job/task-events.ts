import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { clusterOfTask } from "../find-record.ts";
import { noteRest, PAGE } from "../page-options.ts";
import { instantCell } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
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
    if (json) await printJson(io.stdout, page);
    else {
      const now = io.clock.now();
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["SEQ", "AT", "TYPE", "STATUS", "LABEL", "SUMMARY"],
        page.events.map((event) => [
          event.seq,
          instantCell(io.stdout, event.created_at, now),
          event.event_type,
          event.status,
          event.label,
          event.summary,
        ]),
      );
      await noteRest(io.stderr, page);
    }
    return EXIT.ok;
  },
});
