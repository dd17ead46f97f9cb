import { EXIT } from "../../domain/errors.ts";
import { type FrpVisitor, visitorConfiguration } from "../../transport/frp/configuration.ts";
import { clusterName, text, whole } from "../values.ts";
import { defineVerb, option, optionOr, required } from "../verb.ts";
import { frpCluster, OUTPUT, ownProxy, render, SECRETS, secretOf, serverOf, TRUSTED } from "./frp-secrets.ts";

export const verb = defineVerb({
  summary: "Print a configuration for a frpc that visits what another one offers",
  details:
    "For a frpc that you run yourself. In mode frp-xtcp it tries the direct way first, for the time that the cluster's entry says, and falls back to frps.",
  positionals: {},
  flags: {
    cluster: required(clusterName, "Whose frps it is"),
    "bind-port": required(whole(1, 65_535), "Port on the machine of that frpc"),
    "bind-addr": optionOr(text("ADDRESS"), "127.0.0.1", "Where it listens"),
    "server-name": option(text("NAME"), "What it visits; when left out, what render-frpc-config calls it for this cluster"),
    "visitor-name": optionOr(text("NAME"), "relay-stcp-visitor", "What it is called itself"),
    ...SECRETS,
    ...TRUSTED,
    ...OUTPUT,
  },
  examples: [
    ["relay-host render-frpc-visitor-config --cluster other --bind-port 8765", "what is offered appears on port 8765 of loopback"],
  ],
  async run({ flags, io, json, relay }) {
    const { entry, room } = await frpCluster(io, relay, flags.cluster);
    const token = await secretOf(io, flags.token, "CLIO_RELAY_FRP_TOKEN", room.token);
    const secret = (await secretOf(io, flags["secret-key"], "CLIO_RELAY_STCP_SECRET", room.secret)) ?? room.secret;
    const name = flags["visitor-name"];
    const visitor = {
      name,
      type: "stcp",
      secret,
      server: flags["server-name"] ?? ownProxy(room),
      address: flags["bind-addr"],
      port: flags["bind-port"],
    } as const satisfies FrpVisitor;
    const timeoutMs = entry.frp.direct_timeout_seconds * 1_000;
    const visitors: readonly FrpVisitor[] =
      entry.mode === "frp-xtcp"
        ? [
            // It binds no port, and takes only what the other one hands over.
            { ...visitor, port: -1 },
            { ...visitor, name: `${name}-direct`, type: "xtcp", server: `${visitor.server}-direct`, fallback: { to: name, timeoutMs } },
          ]
        : [visitor];
    const { server, beside } = serverOf({ io, relay }, entry, { ...room, token }, flags);
    await render(io, json, flags, visitorConfiguration(server, visitors), server.caFile, beside);
    return EXIT.ok;
  },
});
