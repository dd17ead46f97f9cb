import { EXIT } from "../../domain/errors.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";

interface Removed {
  readonly stopped: readonly string[];
  readonly removed: readonly string[];
}

export const verb = defineVerb({
  summary: "Stop the service of a cluster's worker and take it away; jobs go on",
  details:
    "Unit, supervisor and crontab lines of it, whoever launches it. Its worker ends with it, and the next one takes its jobs over: worker start, or another service by " +
    "install-endpoint-service --launcher. Where there is none, that is the answer.",
  ...NAMED,
  examples: [["cluster remove-endpoint-service my-cluster", "before another launcher is to keep the worker"]],
  async run(call) {
    const { flags, args, io, json } = call;
    const name = nameOf(args, flags);
    const command = "cluster remove-endpoint-service";
    const done = await onHost<"service-remove", Removed>(call, name, { task: "service-remove", command, options: {} });
    if (json) await printJson(io.stdout, done);
    else {
      await printFields(io.stdout, [
        ["cluster", name],
        ["stopped", done.stopped.join(", ") || "nothing: none ran"],
        ["removed", done.removed.join(", ") || "nothing: there was no service"],
      ]);
      if (done.stopped.length > 0)
        await io.stderr.write(`notice: no worker of ${name} runs until clio-relay worker start --cluster ${name}\n`);
    }
    return EXIT.ok;
  },
});
