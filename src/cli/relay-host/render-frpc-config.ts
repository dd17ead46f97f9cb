import { EXIT } from "../../domain/errors.ts";
import { type FrpProxy, frpcConfiguration } from "../../transport/frp/configuration.ts";
import { clusterName, text, whole } from "../values.ts";
import { defineVerb, option, required } from "../verb.ts";
import { frpCluster, OUTPUT, ownProxy, render, SECRETS, secretOf, serverOf, TRUSTED } from "./frp-secrets.ts";

export const verb = defineVerb({
  summary: "Print a configuration for a frpc that offers a port of its machine",
  details:
    "For a frpc that you run yourself, beside the one that the worker has: the worker needs none of this. render-frpc-visitor-config is the other side.",
  positionals: {},
  flags: {
    cluster: required(clusterName, "Whose frps it is"),
    "local-port": required(whole(1, 65_535), "Port on the machine of that frpc"),
    "proxy-name": option(text("NAME"), "What it is called at frps; after the cluster's room when left out: relay-stcp- and 12 digits"),
    ...SECRETS,
    ...TRUSTED,
    ...OUTPUT,
  },
  examples: [["relay-host render-frpc-config --cluster other --local-port 8848", "offer port 8848"]],
  async run({ flags, io, json, relay }) {
    const { entry, room } = await frpCluster(io, relay, flags.cluster);
    const token = await secretOf(io, flags.token, "CLIO_RELAY_FRP_TOKEN", room.token);
    const secret = (await secretOf(io, flags["secret-key"], "CLIO_RELAY_STCP_SECRET", room.secret)) ?? room.secret;
    const proxy: FrpProxy = { name: flags["proxy-name"] ?? ownProxy(room), type: "stcp", secret, target: { port: flags["local-port"] } };
    const direct: FrpProxy = { ...proxy, name: `${proxy.name}-direct`, type: "xtcp" };
    const proxies = entry.mode === "frp-xtcp" ? [proxy, direct] : [proxy];
    const { server, beside } = serverOf({ io, relay }, entry, { ...room, token }, flags);
    await render(io, json, flags, frpcConfiguration(server, proxies), server.caFile, beside);
    return EXIT.ok;
  },
});
