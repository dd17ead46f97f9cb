import { EXIT } from "../../domain/errors.ts";
import { bytesText } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { roundTripText } from "./link-text.ts";

export const verb = defineVerb({
  summary: "List the links: state, last round trip, bytes, connections",
  details:
    "SSH counts the connections that were dialed for the cluster since the one that its link is on: nothing but connect and bootstrap dials. " +
    "With --json each link has its entries of the ledger, in which every dial is written down before it is made.",
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
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["CLUSTER", "MODE", "STATE", "ROUND TRIP", "IN", "OUT", "SSH", "DETAIL"],
        links.map((link) => [
          link.cluster,
          link.mode,
          link.state,
          roundTripText(link.round_trip_ms),
          link.bytes_in === null ? null : bytesText(link.bytes_in),
          link.bytes_out === null ? null : bytesText(link.bytes_out),
          link.ssh_connections_since_bring_up,
          link.detail,
        ]),
      );
      if (links.length === 0) await io.stderr.write("there is no cluster yet: clio-relay init\n");
    }
    return EXIT.ok;
  },
});
