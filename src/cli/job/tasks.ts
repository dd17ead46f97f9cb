import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noneFrom, PAGE, restOf } from "../page-options.ts";
import { printPage } from "../print/page.ts";
import { jobId } from "../values.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the tasks of a job",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [["job tasks job_0123456789abcdef0123456789abcdef", "its tasks and their states"]],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const page = await cluster.tasks(id, { cursor: flags.cursor, limit: flags.limit });
    return printPage({ io, json }, page, {
      header: ["TASK", "STATE", "UPDATED", "NAME"],
      rows: ({ instant }) => page.tasks.map((task) => [task.task_id, task.state, instant(task.updated_at), task.name]),
      none: noneFrom(flags.cursor, "it has no tasks"),
      notes: [restOf(page)],
    });
  },
});
