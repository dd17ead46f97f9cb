import { defineVerb, toggle } from "../verb.ts";
import { runInForeground } from "./foreground.ts";

export const verb = defineVerb({
  summary: "Run the daemon in the foreground",
  details: "Other commands start it by themselves in the background. This is for service managers, and for looking at what it does.",
  positionals: {},
  flags: { background: toggle("Say things in the log only") },
  examples: [["desktop run", "until Ctrl-C"]],
  run: ({ flags, io, relay }) => runInForeground(io, relay, flags.background),
});
