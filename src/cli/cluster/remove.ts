import { EXIT } from "../../domain/errors.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { forgetToken } from "./relay-token.ts";

export const verb = defineVerb({
  summary: "Forget a cluster; its queue and files stay",
  details:
    "Only the entry goes. Its worker, if one runs, goes on; queue, logs and artifacts are where they were when the cluster is added again.",
  ...NAMED,
  examples: [["cluster remove old-cluster", "take it off the list"]],
  async takesAway({ flags, args, relay }) {
    const { name, mode } = await relay.clusterEntry(nameOf(args, flags));
    return `this forgets ${name}${mode === "local" ? "" : ", how it is reached, and ends its link"}; ${staysOf(name, mode)}`;
  },
  async run({ flags, args, io, json, relay }) {
    const name = nameOf(args, flags);
    const { mode } = await relay.clusterEntry(name);
    const removed = await relay.desktop.removeCluster(name);
    forgetToken(relay, name);
    if (json) await printJson(io.stdout, removed);
    else await io.stdout.write(`removed ${removed.name}\n`);
    // A program knows what it has asked for.
    if (!json) await io.stderr.write(`notice: ${staysOf(name, mode)}\n`);
    return EXIT.ok;
  },
});

/** What a cluster that is forgotten leaves, and what would have ended it. */
const staysOf = (name: string, mode: string): string =>
  mode === "local"
    ? `a worker of it that runs goes on, until clio-relay worker stop --cluster ${name}`
    : `what may still be installed on its host stays, and so does a worker that runs there; clio-relay cluster uninstall ${name} removes both, and comes first because it needs the entry`;
