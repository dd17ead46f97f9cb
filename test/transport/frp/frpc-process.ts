import { visitorConfiguration } from "../../../src/transport/frp/configuration.ts";
import { startFrpc } from "../../../src/transport/frp/frpc.ts";

/** A process that owns a frpc, says its number, and then does nothing for a long time. */
const [directory, frpc, port, token] = process.argv.slice(2) as [string, string, string, string];
const { pid } = await startFrpc({
  frpc,
  configuration: visitorConfiguration({ address: "127.0.0.1", port: Number(port), protocol: "tcp", token }, []),
  direct: false,
  directory,
  name: "owned",
  variables: process.env,
  secrets: [token],
  onTrouble: (error) => console.error(error),
});
console.log(pid);
setInterval(() => undefined, 60_000);
