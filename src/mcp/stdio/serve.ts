import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { relayServer } from "../server.ts";
import type { McpService } from "../service.ts";
import { type StdioStreams, StdioTransport } from "./transport.ts";

/** Serve one client on standard input and output, until the input ends or the signal is aborted. */
export async function serveOnStdio(service: McpService, streams: StdioStreams, clustersFile: string, signal: AbortSignal): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const transport = new StdioTransport(service, streams);
  const servers = new Set<ReturnType<typeof relayServer>>();
  const handle = serveStdio(
    ({ era }) => {
      const server = relayServer(service, era);
      servers.add(server);
      return server;
    },
    { transport, onerror: service.onFault },
  );
  const unwatch = service.watchTools(clustersFile, (revision) => {
    for (const server of servers) server.toolsAre(revision);
  });
  // The SDK has set its own by now.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    resolve();
  };
  const stop = (): void => void handle.close();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  await ended;
  signal.removeEventListener("abort", stop);
  unwatch();
  service.close();
}
