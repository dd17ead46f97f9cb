import { COMMIT, VERSION } from "../config/version.ts";
import { EXIT } from "../domain/errors.ts";
import { printJson } from "./print/table.ts";
import { defineVerb } from "./verb.ts";

export const verb = defineVerb({
  summary: "Print the version",
  positionals: {},
  flags: {},
  examples: [["version --json", "the same for a program, with the newest schema of a queue"]],
  async run({ io, json }) {
    if (json) {
      const { newestSchema } = await import("../roles/queue-check.ts");
      await printJson(io.stdout, { version: VERSION, commit: COMMIT, queue_schema: await newestSchema() });
    } else await io.stdout.write(`clio-relay ${VERSION} (${COMMIT})\n`);
    return EXIT.ok;
  },
});
