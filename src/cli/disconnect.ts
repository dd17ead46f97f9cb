import { EXIT } from "../domain/errors.ts";
import { NAMED, nameOf } from "./cluster/named.ts";
import { linkSentence } from "./link/link-text.ts";
import { printJson } from "./print/table.ts";
import { defineVerb } from "./verb.ts";

export const verb = defineVerb({
  summary: "End the link to a cluster; its worker and jobs go on",
  details: "Ends its SSH connection, too. A bring-up that is under way is given up.",
  ...NAMED,
  examples: [["disconnect my-cluster", "let go of the connection"]],
  async run({ flags, args, io, json, relay }) {
    const name = nameOf(args, flags);
    const { mode } = await relay.clusterEntry(name);
    const link = await relay.desktop.disconnect(name);
    if (json) await printJson(io.stdout, link);
    else if (mode === "local") await io.stdout.write(`${name} is on this machine: there is no link to end\n`);
    else await io.stdout.write(`${linkSentence(link)}\n`);
    return EXIT.ok;
  },
});
