import { readListener } from "../../config/api-listener.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { answerOf, runningDesktop } from "../desktop/running.ts";
import { defineVerb } from "../verb.ts";
import { printListener } from "./listener-text.ts";

export const verb = defineVerb({
  summary: "Show how the API is served on TCP",
  details: "Starts nothing. Ends with 5 when no daemon answers, and with 1 when the API is to be served and is not.",
  positionals: {},
  flags: {},
  examples: [["api status", "address, token file, connections"]],
  async run({ io, json, relay }) {
    const running = await runningDesktop(io, relay);
    if (running === null) {
      const wanted = readListener(relay.paths, io.env) !== null;
      const hint = wanted ? "clio-relay desktop start: the API is served with it" : "clio-relay api start";
      throw new RelayError("desktop_unavailable", "no daemon is running", {}, hint);
    }
    const status = await answerOf(running.process, (limit) => running.desktop.listener(limit));
    await printListener(io, status, json);
    return status.state === "failed" ? EXIT.failed : EXIT.ok;
  },
});
