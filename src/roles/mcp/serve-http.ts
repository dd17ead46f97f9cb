import path from "node:path";
import { Hono } from "hono";
import { type Access, admit, namesOf } from "../../api/listener/access.ts";
import { problemResponse } from "../../api/problem.ts";
import { isLoopback } from "../../config/api-listener.ts";
import { type Environment, variable } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { parseRelayToken } from "../../config/relay-token.ts";
import { RelayError } from "../../domain/errors.ts";
import { aborted } from "../../lib/waiting/aborted.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { httpEndpoint } from "../../mcp/http/handler.ts";
import type { McpService } from "../../mcp/service.ts";
import { onTcp } from "../desktop/listener.ts";

const VARIABLE = "CLIO_RELAY_API_TOKEN";

export interface McpHttpOptions {
  readonly service: McpService;
  readonly paths: Pick<Paths, "runDir" | "clustersFile">;
  readonly env: Environment;
  readonly clock: Clock;
  readonly host: string;
  readonly port: number;
  /** Where it is on the server; begins with a slash. */
  readonly path: string;
  /** Told where it is. */
  readonly onListening: (url: string) => Promise<void>;
}

/**
 * The token that every request has to carry.
 *
 * @throws RelayError configuration_error where there is none
 */
export function mcpToken(env: Environment): string {
  const given = variable(env, VARIABLE);
  if (given !== undefined) return parseRelayToken(given, VARIABLE);
  throw new RelayError(
    "configuration_error",
    `over HTTP every request carries a token, and ${VARIABLE} has none`,
    {},
    `${VARIABLE}=… clio-relay mcp-server --transport http; 32 random characters, as of: openssl rand -hex 16`,
  );
}

/** Serve agents over HTTP on this machine, for whoever has the token, until the signal is aborted. @throws RelayError configuration_error */
export async function serveMcpOverHttp(options: McpHttpOptions, signal: AbortSignal): Promise<void> {
  const { service, paths, env, clock, host, path: place } = options;
  const token = mcpToken(env);
  if (!isLoopback(host)) {
    throw new RelayError(
      "configuration_error",
      `${host} can be reached over the network, where the token would be read on the way`,
      { host },
      "listen on 127.0.0.1, and let something that speaks TLS come before it",
    );
  }
  const endpoint = httpEndpoint(service);
  const server = onTcp(
    {
      platform: env.platform,
      clock,
      socket: path.join(paths.runDir, `mcp-${process.pid}.sock`),
      address: { host, port: options.port },
      tls: null,
      token: () => token,
      onFault: service.onFault,
    },
    ({ port }) => {
      const access: Access = {
        token: () => token,
        names: namesOf({ host, port, tls: false, allowed: [] }),
        origins: new Set(),
        identity: null,
        foreign: true,
      };
      return appOf(place, access, (request) => endpoint.fetch(request));
    },
  );
  const unwatch = service.watchTools(paths.clustersFile, (revision, isOther) => endpoint.toolsAre(revision, isOther));
  try {
    const shown = host.includes(":") ? `[${host}]` : host;
    await options.onListening(`http://${shown}:${server.address.port}${place}`);
    await aborted(signal);
  } finally {
    unwatch();
    await endpoint.close();
    await server.stop();
  }
}

function appOf(place: string, access: Access, fetch: (request: Request) => Promise<Response>): Hono {
  const app = new Hono();
  app.all("*", async (c) => {
    try {
      admit(access, c.req.raw, false);
      if (c.req.path !== place) throw new RelayError("route_not_found", `the endpoint is at ${place}`, { path: place });
      return await fetch(c.req.raw);
    } catch (error) {
      return problemResponse(error);
    }
  });
  return app;
}
