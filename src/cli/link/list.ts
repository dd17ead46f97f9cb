import { FIRST_CLUSTER } from "../../config/first-cluster.ts";
import { EXIT } from "../../domain/errors.ts";
import { bytesText } from "../print/quantities.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { printLinks, roundTripText } from "./link-text.ts";

export const verb = defineVerb({
  summary: "List the links: state, last round trip, bytes, connections",
  details:
    "SSH counts the connections that were dialed for the cluster since the one that its link is on: nothing but connect and bootstrap dials. " +
    "With --json each link has its last entries of the ledger, in which every dial is written down before it is made, and the number of the one that it is on (bring_up_seq).",
  positionals: {},
  flags: {},
  examples: [
    ["link list", "how each cluster is reached, and whether it is"],
    ["link list --json", "the same with the ledger of connections"],
  ],
  async run({ io, json, relay }) {
    const links = (await relay.clusters()).length === 0 ? [] : await relay.desktop.links();
    if (json) await printJson(io.stdout, { links });
    else {
      await printLinks(io, links, {
        CLUSTER: ({ cluster }) => cluster,
        MODE: ({ mode }) => mode,
        STATE: ({ state }) => state,
        "ROUND TRIP": ({ round_trip_ms }) => roundTripText(round_trip_ms),
        IN: ({ bytes_in }) => (bytes_in === null ? null : bytesText(bytes_in)),
        OUT: ({ bytes_out }) => (bytes_out === null ? null : bytesText(bytes_out)),
        SSH: ({ ssh_connections_since_bring_up }) => ssh_connections_since_bring_up,
      });
      if (links.length === 0) await io.stderr.write(`there is no cluster yet: ${FIRST_CLUSTER}\n`);
    }
    return EXIT.ok;
  },
});
