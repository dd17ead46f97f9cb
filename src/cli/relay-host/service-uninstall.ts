import { EXIT, RelayError } from "../../domain/errors.ts";
import { TOKEN_FILE, UNIT_FILE, uninstallRelayHost } from "../../roles/relay-host/service.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb, toggle } from "../verb.ts";
import { commandsOf } from "./run-command.ts";

export const verb = defineVerb({
  summary: "Stop this machine's relay-host, and remove its unit",
  details:
    "Needs root. What it has joined ends when it is quiet, within 10 s. The token stays, so that an installation later takes those who have it.",
  positionals: {},
  flags: { purge: toggle("Remove the token, too") },
  examples: [["relay-host service uninstall", "the token stays"]],
  async takesAway({ flags, io }) {
    if (io.env.uid !== 0)
      throw new RelayError("usage", "a unit of the machine is root's to remove", {}, "sudo clio-relay relay-host service uninstall");
    const what = `this stops the relay-host of this machine and removes ${UNIT_FILE}`;
    return flags.purge ? `${what} and ${TOKEN_FILE}, so that nobody who has the token is let in by a later one` : what;
  },
  async run({ flags, io, json }) {
    const done = await uninstallRelayHost(flags.purge, commandsOf(io.env));
    if (json) await printJson(io.stdout, done);
    else {
      await printFields(io.stdout, [
        ["removed", done.removed.join(", ") || "nothing: it was not there"],
        ["kept", done.kept.join(", ") || "nothing"],
      ]);
    }
    return EXIT.ok;
  },
});
