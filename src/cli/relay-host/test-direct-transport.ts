import { RelayError } from "../../domain/errors.ts";
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
    runTrial({ io, json }, { cluster: flags.cluster, transport: "frp-xtcp", seconds: flags["timeout-seconds"] }, async (trial, signal) => {
      const carrier = await tryFrp({ io, relay }, { cluster: flags.cluster, mode: "frp-xtcp" }, trial, signal);
      if (carrier === "frp-xtcp" || flags["allow-stcp-fallback"]) return;
      await trial.step("direct", () => {
        throw new RelayError(
          "frp_unreachable",
          "there is no direct way: frps carried it",
          { layer: "direct" },
          "UDP has to get out of both sites, to the STUN server (--frp-stun-server) and to each other; without it, mode frp-stcp does the same without the try",
        );
      });
    }),
});
