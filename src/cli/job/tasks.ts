import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { noteRest, PAGE } from "../page-options.ts";
import { instantCell } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
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
    if (json) await printJson(io.stdout, page);
    else {
      const now = io.clock.now();
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["TASK", "STATE", "UPDATED", "NAME"],
        page.tasks.map((task) => [task.task_id, task.state, instantCell(io.stdout, task.updated_at, now), task.name]),
      );
      await noteRest(io.stderr, page);
    }
    return EXIT.ok;
  },
});
