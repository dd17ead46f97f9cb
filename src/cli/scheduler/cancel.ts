import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { PROVIDER, schedulerId } from "./id.ts";

export const verb = defineVerb({
  summary: "Ask a cluster's scheduler for the end of a job of this queue",
  details:
    "Only of one that a job of this queue has there; any other id is refused. A job that has not ended is canceled with it, as by job cancel --cancel-scheduler-job. What was left to go on by an " +
    "earlier cancel is ended by this.",
  positionals: { id: schedulerId },
  flags: { cluster: CLUSTER, provider: PROVIDER },
  examples: [["scheduler cancel 12345 --cluster my-cluster", "end what a canceled job has left there"]],
  async run({ flags, args, io, json, relay }) {
    const cluster = relay.desktop.cluster(await relay.clusterName(flags.cluster));
    const asked = await cluster.scheduler.cancel(args.id, flags.provider ?? null);
    if (json) await printJson(io.stdout, asked);
    else {
      const what = asked.disposition === "terminal" ? "had ended already" : "cancel requested";
      await io.stdout.write(`${asked.scheduler} ${asked.scheduler_job_id} ${what}; ${asked.job_id} is ${asked.state}\n`);
    }
    return EXIT.ok;
  },
});
