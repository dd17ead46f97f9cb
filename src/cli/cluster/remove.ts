import { EXIT } from "../../domain/errors.ts";
import { confirm } from "../confirm.ts";
import { Interrupted } from "../failure.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";

export const verb = defineVerb({
  summary: "Forget a cluster; its queue and files stay",
  details:
    "Only the entry goes. Its worker, if one runs, goes on; queue, logs and artifacts are where they were when the cluster is added again.",
  ...NAMED,
  examples: [["cluster remove old-cluster", "take it off the list"]],
  async run(call) {
    const { flags, args, io, json, relay } = call;
    const name = nameOf(args, flags);
    await relay.clusterEntry(name);
    if (!(await confirm(call, `Forget ${name}?`))) throw new Interrupted();
    const removed = await relay.desktop.removeCluster(name);
    if (json) await printJson(io.stdout, removed);
    else await io.stdout.write(`removed ${removed.name}\n`);
    return EXIT.ok;
  },
});
