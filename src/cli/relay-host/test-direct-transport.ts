import { defineVerb, toggle } from "../verb.ts";
import { tryFrp } from "./frp-trial.ts";
import { runTrial, TESTED } from "./transport-test.ts";

export const verb = defineVerb({
  summary: "Try the direct way to a cluster's worker, from peer to peer",
  details:
    "As test-frpc-connection does, over UDP. Where no hole can be punched it fails, unless --allow-stcp-fallback takes frps for an answer, as the link does.",
  positionals: {},
  flags: { ...TESTED, "allow-stcp-fallback": toggle("Also when frps carries it in the end") },
  examples: [["relay-host test-direct-transport --cluster other", "is there a direct way?"]],
  run: ({ flags, io, json, relay }) =>
    runTrial({ io, json }, { cluster: flags.cluster, transport: "frp-xtcp", seconds: flags["timeout-seconds"] }, (trial, signal) =>
      tryFrp({ io, relay }, { cluster: flags.cluster, mode: "frp-xtcp", mayFallBack: flags["allow-stcp-fallback"] }, trial, signal),
    ),
});
