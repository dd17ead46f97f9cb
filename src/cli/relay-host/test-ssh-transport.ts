import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { defineVerb, ignored } from "../verb.ts";
import { tryLink } from "./link-trial.ts";
import { runTrial, TESTED } from "./transport-test.ts";

export const verb = defineVerb({
  summary: "Try a link of mode ssh",
  details:
    "Of a cluster of mode ssh, whose link clio-relay connect has brought up: round trip and throughput over the one SSH connection. Nothing is dialed.",
  positionals: {},
  flags: {
    ...TESTED,
    "session-id": ignored("the link has no sessions of its own"),
    "detach-remote": ignored("the worker goes on in any case", false),
    "teardown-remote": ignored("the worker goes on in any case", false),
  },
  examples: [["relay-host test-ssh-transport --cluster my-cluster", "after clio-relay connect my-cluster"]],
  run({ flags: { cluster, "timeout-seconds": seconds }, io, json, relay }) {
    const fits = ({ name, mode }: ClusterEntry): void => {
      if (mode === "ssh") return;
      const instead = mode === "relay" || mode === "local" ? "test-http-transport" : "test-frpc-connection";
      throw new RelayError(
        "configuration_error",
        `${name} is reached by mode ${mode}`,
        { mode },
        `clio-relay relay-host ${instead} --cluster ${name}`,
      );
    };
    return runTrial({ io, json }, { cluster, transport: "ssh", seconds }, (trial, signal) =>
      tryLink(relay, { cluster, signal, fits }, trial),
    );
  },
});
