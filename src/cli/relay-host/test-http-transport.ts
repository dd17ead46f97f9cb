import { defineVerb } from "../verb.ts";
import { tryLink } from "./link-trial.ts";
import { runTrial, TESTED } from "./transport-test.ts";

export const verb = defineVerb({
  summary: "Try HTTP over the link that the daemon holds to a cluster",
  details: "Whether the link is up, round trip and throughput of requests over it. Nothing is dialed.",
  positionals: {},
  flags: TESTED,
  examples: [["relay-host test-http-transport --cluster other", "what commands have to do with"]],
  run: ({ flags: { cluster, "timeout-seconds": seconds }, io, json, relay }) =>
    runTrial({ io, json }, { cluster, transport: "http", seconds }, (trial, signal) => tryLink(relay, { cluster, signal }, trial)),
});
