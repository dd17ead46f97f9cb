import { EXIT } from "../../domain/errors.ts";
import { ensureDesktop } from "../../roles/desktop/start.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";

export const verb = defineVerb({
  summary: "Start the desktop daemon",
  details: "Other commands do so by themselves. A daemon that runs already is left alone.",
  positionals: {},
  flags: {},
  examples: [["desktop start", "start it and go on"]],
  async run({ io, json, relay }) {
    const started = await ensureDesktop({ paths: relay.paths, env: io.env, self: io.self });
    const status = await relay.desktop.status();
    if (json) await printJson(io.stdout, { ...status, started });
    else await io.stdout.write(`desktop runs${started ? "" : " already"} as process ${status.process.pid} on ${status.socket}\n`);
    return EXIT.ok;
  },
});
