import { EXIT } from "../../domain/errors.ts";
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
        ["NAME", "MODE", "SLOTS"],
        clusters.map((entry) => [entry.name, entry.mode, entry.worker_capacity.concurrency]),
      );
      if (clusters.length === 0) await io.stderr.write("there is no cluster yet: clio-relay init\n");
    }
    return EXIT.ok;
  },
});
