import type { ListenerStatus } from "../../api/desktop/listener-views.ts";
import type { CliIo } from "../io.ts";
import { agoText } from "../print/quantities.ts";
import { printFields, printJson } from "../print/table.ts";

/** Show how the API is served on TCP. */
export async function printListener(io: CliIo, status: ListenerStatus, json: boolean): Promise<void> {
  if (json) return printJson(io.stdout, status);
  const { listener, connections, refused } = status;
  const shown = Object.entries(refused).filter(([, times]) => times > 0);
  await printFields(io.stdout, [
    ["state", status.state],
    ["url", status.url],
    ["since", status.since === null ? null : `${status.since} (${agoText(status.since, io.clock.now())})`],
    ["token in", status.token_file],
    [
      "TLS",
      listener === null ? null : listener.tls !== null ? listener.tls.cert_file : listener.behind_proxy ? "by a proxy before it" : "none",
    ],
    ["hosts", listener?.allow_hosts.join(", ") || null],
    ["origins", listener?.allow_origins.join(", ") || null],
    [
      "connections",
      connections === null ? null : `${connections.proven} of ${status.connections_max}, ${connections.unproven} without the token`,
    ],
    ["refused", shown.length === 0 ? null : shown.map(([why, times]) => `${times} ${why}`).join(", ")],
    ["detail", status.detail],
  ]);
}
