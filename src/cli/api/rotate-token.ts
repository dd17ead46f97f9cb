import { EXIT } from "../../domain/errors.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "Replace the token of the API on TCP",
  details:
    "The old one opens nothing from then on, and its connections end, whatever is under way on them; work on the clusters goes on. The new one is in the token file, and not shown.",
  positionals: {},
  flags: {},
  examples: [["api rotate-token --yes", "where the old one may be known to somebody"]],
  takesAway: () => Promise.resolve("this shuts everybody out who has the present token of the API"),
  async run({ io, json, relay }) {
    const status = await relay.desktop.rotateListenerToken();
    if (json) await printJson(io.stdout, status);
    else await io.stdout.write(`${status.token_file} has another token\n`);
    return EXIT.ok;
  },
});
