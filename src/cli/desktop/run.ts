import { defineVerb, toggle } from "../verb.ts";
import { runInForeground } from "./foreground.ts";

export const verb = defineVerb({
  summary: "Run the daemon in the foreground",
  details:
    "Other commands start it by themselves in the background. This is for service managers, and for looking at what it does. " +
    "Started by hand it forwards at most 256 requests at a time; BUN_CONFIG_MAX_HTTP_REQUESTS=16384 in its environment lifts that.",
  positionals: {},
  flags: { background: toggle("Say things in the log only") },
  examples: [["desktop run", "until Ctrl-C"]],
  run: ({ flags, io, relay }) => runInForeground(io, relay, flags.background),
});
