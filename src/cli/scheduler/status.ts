import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { observedLines, phaseText } from "../print/scheduler-text.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { PROVIDER, schedulerId } from "./id.ts";

export const verb = defineVerb({
  summary: "Show what a cluster's scheduler says of a job",
  details:
    "Of any job there, whether clio-relay has submitted it or not. What is shown is at most 5 s old. The place in the queue is counted by time of submission among what waits in the same partition: " +
    "priorities and fair share are not known here.",
  positionals: { id: schedulerId },
  flags: { cluster: CLUSTER, provider: PROVIDER },
  examples: [["scheduler status 12345 --cluster my-cluster", "state, place in the queue, nodes"]],
  async run({ flags, args, io, json, relay }) {
    const cluster = relay.desktop.cluster(await relay.clusterName(flags.cluster));
    const seen = await cluster.scheduler.observe(args.id, { provider: flags.provider });
    if (json) await printJson(io.stdout, seen);
    else {
      await printFields(io.stdout, [
        ["id", `${seen.scheduler_job_id} of ${seen.scheduler}${seen.cluster === null ? "" : ` on ${seen.cluster}`}`],
        ["name", seen.name],
        ["user", seen.user],
        ["state", seen.record_found === false ? "unknown: no source has it" : phaseText(seen)],
        ...observedLines(seen, io.clock.now()),
        ["job", seen.job_id],
      ]);
    }
    return EXIT.ok;
  },
});
