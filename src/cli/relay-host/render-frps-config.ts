import { readRoom } from "../../config/frp-room.ts";
import { EXIT } from "../../domain/errors.ts";
import { FRP_PROTOCOLS } from "../../domain/frp.ts";
import { frpsConfiguration } from "../../transport/frp/configuration.ts";
import { clusterName, oneOf, text, whole } from "../values.ts";
import { defineVerb, option, optionOr } from "../verb.ts";
import { OUTPUT, render, SECRETS, secretOf } from "./frp-secrets.ts";

export const verb = defineVerb({
  summary: "Print a configuration for frps",
  details:
    "One port takes wss, websocket and tcp alike; for wss an HTTPS edge stands in front of it, which ends TLS and passes WebSockets on. The token is that of the option, of " +
    "CLIO_RELAY_FRP_TOKEN, or of the cluster that is named.",
  positionals: {},
  flags: {
    cluster: option(clusterName, "Take the token of this cluster"),
    token: SECRETS.token,
    "bind-addr": optionOr(text("ADDRESS"), "0.0.0.0", "Where it listens; 127.0.0.1 where an edge on the same machine is all that comes"),
    "bind-port": optionOr(whole(1, 65_535), 7_000, "Its port"),
    "transport-protocol": optionOr(
      oneOf(...FRP_PROTOCOLS),
      "wss" as const,
      "What clients will speak; the configuration is the same for each",
    ),
    "dashboard-port": option(whole(1, 65_535), "Port of its page on loopback, where the build has one"),
    ...OUTPUT,
  },
  examples: [
    ["relay-host render-frps-config --cluster other --output frps.toml", "then frps -c frps.toml, on the machine in the middle"],
    ["relay-host render-frps-config --token @token.txt --bind-port 7000", "with a token from a file"],
  ],
  async run({ flags, io, json, relay }) {
    const known = flags.cluster === undefined ? null : readRoom(relay.paths, flags.cluster, io.env);
    const token = await secretOf(io, flags.token, "CLIO_RELAY_FRP_TOKEN", known?.token ?? null);
    const dashboard = flags["dashboard-port"];
    const options = { address: flags["bind-addr"], port: flags["bind-port"], token };
    const configuration = frpsConfiguration(dashboard === undefined ? options : { ...options, dashboardPort: dashboard });
    await render(io, json, { ...flags, secret: token !== null }, configuration);
    if (token === null) await io.stderr.write("warning: without a token anybody can use that frps\n");
    return EXIT.ok;
  },
});
