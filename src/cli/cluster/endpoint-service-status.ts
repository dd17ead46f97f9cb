import { EXIT } from "../../domain/errors.ts";
import type { ServiceStatus } from "../../transport/service/status.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb, refused } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";
import { serviceRows } from "./service-text.ts";

export const verb = defineVerb({
  summary: "Show how the service of a cluster's worker is",
  details: "Changes nothing there.",
  positionals: NAMED.positionals,
  flags: { ...NAMED.flags, "ssh-host": refused("it is part of the cluster's entry") },
  examples: [["cluster endpoint-service-status my-cluster", "state, launcher, and what would have to be done"]],
  async run(call) {
    const { flags, args, io, json } = call;
    const name = nameOf(args, flags);
    const command = "cluster endpoint-service-status";
    const status = await onHost<"service-status", ServiceStatus>(call, name, { task: "service-status", command, options: {} });
    if (json) await printJson(io.stdout, status);
    else await printFields(io.stdout, serviceRows(status));
    return EXIT.ok;
  },
});
