import { EXIT, RelayError } from "../../domain/errors.ts";
import { printJson } from "../print/table.ts";
import { defineVerb, toggle } from "../verb.ts";
import { PINS, pinsWith } from "./entry-options.ts";
import { withLoginNode } from "./login-node.ts";
import { NAMED, nameOf } from "./named.ts";
import { warnOfRoute } from "./route-change.ts";

export const verb = defineVerb({
  summary: "Pin which host a cluster's login node has to be",
  details:
    "Each bring-up, and whatever is done on the host, is held to it. Pins of a kind that is named replace those that there are; a pinned host key comes before known_hosts. Which worker the cluster was linked to is no pin of this command: cluster bootstrap takes another.",
  positionals: NAMED.positionals,
  flags: { ...NAMED.flags, ...PINS, clear: toggle("Take the four kinds of pins away first; which worker was linked stays known") },
  examples: [
    ["cluster pin-target my-cluster --target-hostname login1", "the node that has the worker"],
    ["cluster pin-target my-cluster --scheduler-cluster-name my-site", "any login node of one site; cluster probe --json says its name"],
    ["cluster pin-target my-cluster --clear", "take whatever ssh takes"],
  ],
  async run({ flags, args, io, json, relay }) {
    const name = nameOf(args, flags);
    const kinds = Object.keys(PINS) as (keyof typeof PINS)[];
    if (!flags.clear && kinds.every((kind) => (flags[kind]?.length ?? 0) === 0)) {
      throw new RelayError(
        "usage",
        "nothing is named that could be pinned",
        {},
        `${kinds.map((kind) => `--${kind}`).join(", ")}, or --clear`,
      );
    }
    await relay.clusterEntry(name);
    const { before, after } = await relay.desktop.changeCluster(name, (known) => {
      const reached = withLoginNode(name, known);
      return { ...reached, target_identity: pinsWith(flags.clear ? null : reached, flags) };
    });
    if (json) await printJson(io.stdout, after);
    else await io.stdout.write(`changed ${after.name}\n`);
    await warnOfRoute(io, before, after);
    return EXIT.ok;
  },
});
