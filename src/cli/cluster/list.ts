import { FIRST_CLUSTER } from "../../config/first-cluster.ts";
import { EXIT } from "../../domain/errors.ts";
import { forJobs } from "../print/slots-text.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the registered clusters",
  positionals: {},
  flags: {},
  examples: [["cluster list", "names and modes"]],
  async run({ io, json, relay }) {
    const clusters = await relay.clusters();
    if (json) await printJson(io.stdout, { clusters });
    else {
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["NAME", "MODE", "SLOTS", "FOR JOBS"],
        clusters.map(({ name, mode, worker_capacity }) => [name, mode, worker_capacity.concurrency, forJobs(worker_capacity)]),
      );
      if (clusters.length === 0) await io.stderr.write(`there is no cluster yet: ${FIRST_CLUSTER}\n`);
    }
    return EXIT.ok;
  },
});
