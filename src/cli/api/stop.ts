import { EXIT } from "../../domain/errors.ts";
import { defineVerb } from "../verb.ts";
import { printListener } from "./listener-text.ts";

export const verb = defineVerb({
  summary: "Serve the API on TCP no longer",
  details: "Its connections end. The daemon, its links and the token stay.",
  positionals: {},
  flags: {},
  examples: [["api stop", "until the next api start"]],
  async run({ io, json, relay }) {
    await printListener(io, await relay.desktop.stopListener(), json);
    return EXIT.ok;
  },
});
