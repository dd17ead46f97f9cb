import { EXIT } from "../../domain/errors.ts";
import type { ServiceStatus } from "../../transport/service/status.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb, refused } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";
import { serviceRows } from "./service-text.ts";

interface Restarted {
  readonly outcome: "ready" | "in-progress";
  readonly status: ServiceStatus;
}

export const verb = defineVerb({
  summary: "Restart the service of a cluster's worker; jobs go on",
  details:
    "The worker takes the entry's capacity and job environment as they are now. Ends with 6 where it is still on its way after five and a half minutes.",
  positionals: NAMED.positionals,
  flags: { ...NAMED.flags, "ssh-host": refused("it is part of the cluster's entry") },
  examples: [["cluster restart-endpoint-service my-cluster", "after a change of its capacity"]],
  async run(call) {
    const { flags, args, io, json } = call;
    const name = nameOf(args, flags);
    const command = "cluster restart-endpoint-service";
    const done = await onHost<"service-restart", Restarted>(call, name, { task: "service-restart", command, options: {} });
    if (json) await printJson(io.stdout, done);
    else await printFields(io.stdout, serviceRows(done.status));
    return done.outcome === "ready" ? EXIT.ok : EXIT.notFinished;
  },
});
