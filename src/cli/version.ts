import { COMMIT, VERSION } from "../config/version.ts";
import { EXIT } from "../domain/errors.ts";
import { printJson } from "./print/table.ts";
import { defineVerb } from "./verb.ts";

export const verb = defineVerb({
  summary: "Print the version",
  positionals: {},
  flags: {},
  examples: [["version --json", "version and commit, for a program"]],
  async run({ io, json }) {
    if (json) await printJson(io.stdout, { version: VERSION, commit: COMMIT });
    else await io.stdout.write(`clio-relay ${VERSION} (${COMMIT})\n`);
    return EXIT.ok;
  },
});
