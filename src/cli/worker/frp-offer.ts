import path from "node:path";
import { readFrpOffering } from "../../config/frp-offer.ts";
import { withOutboundProxy } from "../../config/outbound-proxy.ts";
import type { FrpOffer } from "../../roles/worker/frp-keeper.ts";
import { frpServer } from "../../transport/frp/place.ts";
import { serverText } from "../../transport/frp/visit.ts";
import { caFiles } from "../../transport/outbound/certificates.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

/** What the worker of a cluster offers at a frps, as bootstrap has configured it; nothing where it has not. @throws RelayError configuration_error */
export function frpOffer(
  io: Pick<CliIo, "env">,
  { paths, settings }: Pick<Installation, "paths" | "settings">,
  cluster: string,
): { frp?: FrpOffer } {
  const { variables, home } = io.env;
  const offering = readFrpOffering(paths.coreDir(cluster), io.env);
  if (offering === null) return {};
  const directory = path.join(paths.runDir, "frp");
  const { server, room, direct, frpc } = offering;
  return {
    frp: {
      server: () =>
        frpServer(server, room, {
          variables: withOutboundProxy(io.env, settings).variables,
          caFiles: caFiles(settings.ca_file, variables),
          directory,
          cluster,
        }),
      place: serverText({ protocol: server.protocol, address: server.server_addr, port: server.server_port }),
      room,
      types: direct ? ["stcp", "xtcp"] : ["stcp"],
      frpc: frpc.startsWith("~/") ? path.join(home, frpc.slice(2)) : frpc,
      directory,
      variables,
    },
  };
}
