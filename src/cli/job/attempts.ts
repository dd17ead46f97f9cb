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
  summary: "List the attempts of a job",
  positionals: { job: jobId },
  flags: { cluster: CLUSTER, ...PAGE },
  examples: [["job attempts job_0123456789abcdef0123456789abcdef", "when each began and how it ended"]],
  async run({ flags, args, io, json, relay }) {
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const page = await cluster.attempts(id, { cursor: flags.cursor, limit: flags.limit });
    if (json) await printJson(io.stdout, page);
    else {
      const now = io.clock.now();
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["ATTEMPT", "STATE", "STARTED", "ENDED", "OUTCOME", "MESSAGE"],
        page.attempts.map((a) => [
          a.attempt,
          a.state,
          instantCell(io.stdout, a.started_at, now),
          instantCell(io.stdout, a.ended_at, now),
          a.outcome?.reason ?? null,
          a.outcome?.message ?? null,
        ]),
      );
      await noteRest(io.stderr, page);
    }
    return EXIT.ok;
  },
});
