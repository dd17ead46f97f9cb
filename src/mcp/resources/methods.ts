import { ProtocolError, ResourceNotFoundError, type Server } from "@modelcontextprotocol/server";
import { errorRule, isRelayError } from "../../domain/errors.ts";
import { protocolError } from "../protocol-error.ts";
import type { McpService } from "../service.ts";
import { readAddress, TEMPLATES } from "./address.ts";
import { readResource } from "./read.ts";
import { recentJobs } from "./recent.ts";
import { watchResource } from "./watch.ts";

/** Resource not found, before 2026-07-28. */
const LEGACY_NOT_FOUND = -32002;
/** Resources that one connection of an older client may subscribe to. */
const SUBSCRIPTIONS = 256;

const CLUSTERS = {
  uri: "relay://clusters",
  name: "clusters",
  title: "The clusters",
  mimeType: "application/json",
  description: "The clusters with the state of each link, as relay_list_clusters says it",
} as const;

/** Serve the resources. Older clients subscribe by a request each; those of 2026-07-28 by subscriptions/listen, which is not a server's own matter. */
export function serveResources(server: Server, service: McpService, era: "legacy" | "modern"): void {
  const notFound = (uri: string): ProtocolError =>
    era === "modern" ? new ResourceNotFoundError(uri) : new ProtocolError(LEGACY_NOT_FOUND, `Resource not found: ${uri}`, { uri });
  const failure = (uri: string, error: unknown): ProtocolError =>
    isRelayError(error) && errorRule(error.code).http === 404 ? notFound(uri) : protocolError(error);
  server.setRequestHandler("resources/list", async (_request, ctx) => ({
    resources: [CLUSTERS, ...(await recentJobs(service.clusters, ctx.mcpReq.signal))],
  }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: TEMPLATES.map((template) => ({ ...template })) }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }, ctx) => {
    const address = readAddress(uri);
    if (address === null) throw notFound(uri.slice(0, 512));
    try {
      return { contents: [await readResource(service, uri, address, ctx.mcpReq.signal)] };
    } catch (error) {
      throw failure(uri, error);
    }
  });
  if (era === "modern") return;
  const watched = new Map<string, () => void>();
  server.onclose = () => {
    for (const stop of watched.values()) stop();
    watched.clear();
  };
  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }, ctx) => {
    const address = readAddress(uri);
    if (address === null) throw notFound(uri.slice(0, 512));
    if (watched.has(uri)) return {};
    if (watched.size >= SUBSCRIPTIONS) throw new ProtocolError(-32603, "Subscription limit reached");
    // Its place is taken at once: others come meanwhile, and the client may want it no longer, or be gone.
    let wanted = true;
    watched.set(uri, () => {
      wanted = false;
    });
    try {
      const stop = await watchResource(service, address, ctx.mcpReq.signal, () => {
        server.sendResourceUpdated({ uri }).catch(() => undefined);
      });
      if (wanted) watched.set(uri, stop);
      else stop();
      return {};
    } catch (error) {
      if (wanted) watched.delete(uri);
      throw failure(uri, error);
    }
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    watched.get(uri)?.();
    watched.delete(uri);
    return {};
  });
}
