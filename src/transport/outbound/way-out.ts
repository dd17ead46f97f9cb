import type net from "node:net";
import type { Duplex } from "node:stream";
import { isRelayError, type RelayError } from "../../domain/errors.ts";
import type { RelayUrl } from "../../domain/relay-url.ts";
import { authorities, type CaFile } from "./certificates.ts";
import { openTunnel } from "./connect-proxy.ts";
import { type Layer, layerFailure } from "./failure.ts";
import { type ProxyServer, proxyFor } from "./proxy-choice.ts";
import { secure } from "./secure.ts";
import { openWebSocket } from "./websocket/upgrade.ts";

/** What a WebSocket is for (docs/wire.md, Carriers). On TLS and TCP the meeting says it itself. */
const PROTOCOL = "clio-relay-meeting.v1";

/** What the surroundings say about ways out. Taken anew for each dial. */
export interface Surroundings {
  /** HTTPS_PROXY and its like. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Files of certification authorities, besides the system's. */
  readonly caFiles: readonly CaFile[];
}

/** How long each part may take, in milliseconds. */
export interface WayOutTimes {
  /** Names and all addresses together. */
  readonly tcp: number;
  readonly proxy: number;
  readonly tls: number;
  readonly upgrade: number;
}
export const WAY_OUT_TIMES: WayOutTimes = { tcp: 15_000, proxy: 15_000, tls: 10_000, upgrade: 10_000 };

export interface WayOutRequest {
  readonly url: RelayUrl;
  /** Goes into the head of the WebSocket's request, where TLS covers it. On other carriers it is proven and never sent. */
  readonly token: string | null;
  readonly version: string;
  readonly surroundings: Surroundings;
  readonly times?: WayOutTimes;
}

/** A way out that has been looked at and not yet gone. */
export interface WayOut {
  readonly url: RelayUrl;
  readonly proxy: ProxyServer | null;
  /** Where the connection goes: the proxy's port or the relay-host's. */
  readonly first: { readonly host: string; readonly port: number };
  readonly tcpMs: number;
  /**
   * Make of a connection to there what carries a meeting. The socket belongs to it from here on, and is destroyed when it rejects.
   *
   * @throws RelayError proxy_failed, tls_failed, certificate_refused, upgrade_refused, relay_token_refused, relay_host_busy, shutting_down, each with its `layer`; the
   *   signal's reason
   */
  climb(socket: net.Socket, signal: AbortSignal): Promise<Duplex>;
}

/**
 * Decide how a relay-host is reached from here.
 *
 * @throws RelayError configuration_error where a proxy or a file of authorities that is named cannot be used
 */
export function wayOut(request: WayOutRequest): WayOut {
  const { url, surroundings, times = WAY_OUT_TIMES } = request;
  const encrypted = url.scheme === "wss" || url.scheme === "tls";
  const proxy = proxyFor({ host: url.host, port: url.port, tls: encrypted }, surroundings.variables);
  const ca = encrypted || proxy?.tls === true ? authorities(surroundings.caFiles) : [];
  return {
    url,
    proxy,
    first: proxy ?? url,
    tcpMs: times.tcp,
    async climb(socket, signal) {
      let stream = socket;
      try {
        if (proxy?.tls === true) stream = await step("proxy", times.tls, signal, (own) => secure(stream, { ...proxy, ca, signal: own }));
        if (proxy !== null) await step("proxy", times.proxy, signal, (own) => openTunnel(stream, proxy, url.host, url.port, own));
        if (encrypted)
          stream = await step("tls", times.tls, signal, (own) => secure(stream, { host: url.host, port: url.port, ca, signal: own }));
        return await step("http_upgrade", times.upgrade, signal, (own) => carrier(stream, request, own));
      } catch (error) {
        for (const one of new Set([stream, socket])) one.on("error", () => undefined).destroy();
        throw error;
      }
    },
  };
}

async function carrier(stream: net.Socket, { url, token, version }: WayOutRequest, signal: AbortSignal): Promise<Duplex> {
  if (url.scheme === "wss" || url.scheme === "ws") {
    return openWebSocket(stream, { url, protocol: PROTOCOL, token: url.scheme === "wss" ? token : null, version, signal });
  }
  return stream;
}

const CODES = { proxy: "proxy_failed", tls: "tls_failed", http_upgrade: "upgrade_refused" } as const;

/** One part of the way within its time. What fails on the way to a proxy is the proxy's failure. */
async function step<T>(layer: keyof typeof CODES, ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(tooLong(layer, ms)), ms);
  try {
    return await work(AbortSignal.any([signal, late.signal]));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (layer === "proxy" && isRelayError(error) && error.data["layer"] === "tls") {
      throw layerFailure("proxy", error.code, `on the way to the proxy, ${error.message}`, {
        data: { ...error.data, layer: "proxy" },
        hint: error.hint,
        cause: error,
      });
    }
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const tooLong = (layer: keyof typeof CODES & Layer, ms: number): RelayError =>
  layerFailure(layer, CODES[layer], `${WHO[layer]} did not answer within ${ms / 1_000} s`);
const WHO = { proxy: "the proxy", tls: "the other side of TLS", http_upgrade: "the server of the WebSocket" } as const;
