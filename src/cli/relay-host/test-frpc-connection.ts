import { defineVerb } from "../verb.ts";
import { tryFrp } from "./frp-trial.ts";
import { runTrial, TESTED } from "./transport-test.ts";

export const verb = defineVerb({
  summary: "Try the way to a cluster's worker through frps",
  details:
    "With a frpc of the test's own, beside the link: the program, the login, the worker behind it, round trip and throughput. What fails is named, with what mends it.",
  positionals: {},
  flags: TESTED,
  examples: [["relay-host test-frpc-connection --cluster other", "does frps carry?"]],
  run: ({ flags, io, json, relay }) =>
    runTrial({ io, json }, { cluster: flags.cluster, transport: "frp-stcp", seconds: flags["timeout-seconds"] }, (trial, signal) =>
      tryFrp({ io, relay }, { cluster: flags.cluster, mode: "frp-stcp" }, trial, signal),
    ),
});
