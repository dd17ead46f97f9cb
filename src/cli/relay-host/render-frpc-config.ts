import { EXIT } from "../../domain/errors.ts";
import { type FrpProxy, frpcConfiguration } from "../../transport/frp/configuration.ts";
import { clusterName, text, whole } from "../values.ts";
import { defineVerb, optionOr, required } from "../verb.ts";
import { frpCluster, OUTPUT, render, SECRETS, secretOf, serverOf } from "./frp-secrets.ts";

export const verb = defineVerb({
  summary: "Print a configuration for a frpc that offers a port of its machine",
  details:
    "For a frpc that you run yourself, beside the one that the worker has: the worker needs none of this. render-frpc-visitor-config is the other side.",
  positionals: {},
  flags: {
    cluster: required(clusterName, "Whose frps it is"),
    "local-port": required(whole(1, 65_535), "Port on the machine of that frpc"),
    "proxy-name": optionOr(text("NAME"), "relay-stcp", "What it is called at frps"),
    ...SECRETS,
    ...OUTPUT,
  },
  examples: [["relay-host render-frpc-config --cluster other --local-port 8848", "offer port 8848"]],
  async run({ flags, io, json, relay }) {
    const { entry, room } = await frpCluster(io, relay, flags.cluster);
    const token = await secretOf(io, flags.token, "CLIO_RELAY_FRP_TOKEN", room.token);
    const secret = (await secretOf(io, flags["secret-key"], "CLIO_RELAY_STCP_SECRET", room.secret)) ?? room.secret;
    const proxy: FrpProxy = { name: flags["proxy-name"], type: "stcp", secret, target: { port: flags["local-port"] } };
    const direct: FrpProxy = { ...proxy, name: `${proxy.name}-direct`, type: "xtcp" };
    const proxies = entry.mode === "frp-xtcp" ? [proxy, direct] : [proxy];
    await render(io, json, flags.output, frpcConfiguration(serverOf(entry, token), proxies));
    return EXIT.ok;
  },
});
