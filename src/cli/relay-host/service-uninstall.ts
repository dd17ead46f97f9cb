import { EXIT, RelayError } from "../../domain/errors.ts";
import { uninstallRelayHost } from "../../roles/relay-host/service.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb, toggle } from "../verb.ts";
import { runCommand } from "./run-command.ts";

export const verb = defineVerb({
  summary: "Stop this machine's relay-host, and remove its unit",
  details:
    "Needs root. What it has joined ends when it is quiet, within 10 s. The token stays, so that an installation later takes those who have it.",
  positionals: {},
  flags: { purge: toggle("Remove the token, too") },
  examples: [["relay-host service uninstall", "the token stays"]],
  async run({ flags, io, json }) {
    if (io.env.uid !== 0)
      throw new RelayError("usage", "a unit of the machine is root's to remove", {}, "sudo clio-relay relay-host service uninstall");
    const done = await uninstallRelayHost(flags.purge, runCommand);
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
