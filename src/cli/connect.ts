import { EXIT } from "../domain/errors.ts";
import { attend } from "./attended/attend.ts";
import { NAMED, nameOf } from "./cluster/named.ts";
import { linkSentence } from "./link/link-text.ts";
import { printJson } from "./print/table.ts";
import { defineVerb } from "./verb.ts";

export const verb = defineVerb({
  summary: "Bring the link to a cluster up",
  details:
    "Makes the one SSH connection that everything else rides; whatever ssh asks (passwords, codes, unknown host keys) is asked here, once. " +
    "A link that is up is left as it is. With --no-input nothing is asked, and what would have to be ends with 4.",
  ...NAMED,
  examples: [
    ["connect my-cluster", "answer what it asks, and go on"],
    ["connect my-cluster --no-input", "only if it goes without a person"],
  ],
  async run(call) {
    const { flags, args, io, json, relay } = call;
    const name = nameOf(args, flags);
    await relay.clusterEntry(name);
    const link = await attend(call, {
      cluster: name,
      command: `connect ${name}`,
      start: (request, signal) => relay.desktop.connect(name, request, signal),
    });
    if (json) await printJson(io.stdout, link);
    else await io.stdout.write(`${linkSentence(link)}\n`);
    return EXIT.ok;
  },
});
