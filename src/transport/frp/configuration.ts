import type { FRP_PROTOCOLS } from "../../domain/frp.ts";
import { type TomlTable, tomlOf } from "./toml.ts";

type FrpProtocol = (typeof FRP_PROTOCOLS)[number];

/** How frps is reached. */
export interface FrpServer {
  readonly address: string;
  readonly port: number;
  readonly protocol: FrpProtocol;
  /** Null: the server wants none. */
  readonly token: string | null;
  /** HOST:PORT of the STUN server (RFC 8489) by which xtcp learns how it is seen; null: the one that frp comes with. */
  readonly stunServer?: string | null;
  /** Of the certificates in PEM that may vouch for the server; left out: frpc takes any certificate. */
  readonly caFile?: string;
  /** A proxy to go through (http). */
  readonly proxyUrl?: string;
}

export type FrpType = "stcp" | "xtcp";

/** What a frpc offers. */
export interface FrpProxy {
  readonly name: string;
  readonly type: FrpType;
  readonly secret: string;
  readonly target: { readonly socket: string } | { readonly port: number };
}

/** Where a frpc listens for what another one offers. */
export interface FrpVisitor {
  readonly name: string;
  readonly type: FrpType;
  readonly secret: string;
  /** Name of the proxy. */
  readonly server: string;
  readonly address: string;
  readonly port: number;
  /** Of xtcp: the visitor that takes over where no hole can be punched in time. */
  readonly fallback?: { readonly to: string; readonly timeoutMs: number };
}

/**
 * Between keep-alives of the connection to frps, in seconds: edges cut what is idle for 60 to 100 s, and one that is not answered within another of these
 * ends the connection.
 */
const KEEPALIVE_SECONDS = 20;
/** How long a dial to frps may take, in seconds. */
const DIAL_SECONDS = 10;

const auth = (token: string | null): TomlTable | undefined => (token === null ? undefined : { method: "token", token });

/**
 * What both sides of frpc begin with. A first login that fails ends the process: whoever supervises it knows what follows, and when.
 * Format: frp 0.69.1, pkg/config/v1/client.go.
 */
const client = ({ address, port, protocol, token, stunServer = null, caFile, proxyUrl }: FrpServer): TomlTable => ({
  serverAddr: address,
  serverPort: port,
  loginFailExit: true,
  natHoleStunServer: stunServer ?? undefined,
  auth: auth(token),
  log: { to: "console", level: "info", disablePrintColor: true },
  transport: {
    protocol,
    tcpMux: true,
    tcpMuxKeepaliveInterval: KEEPALIVE_SECONDS,
    dialServerTimeout: DIAL_SECONDS,
    proxyURL: proxyUrl,
    tls: caFile === undefined ? undefined : { trustedCaFile: caFile },
  },
});

/** The configuration of a frpc that offers something and visits something. */
export function frpcConfiguration(server: FrpServer, proxies: readonly FrpProxy[], visitors: readonly FrpVisitor[] = []): string {
  return tomlOf({
    ...client(server),
    proxies: proxies.map(({ name, type, secret, target }) => ({
      name,
      type,
      secretKey: secret,
      ...("port" in target
        ? { localIP: "127.0.0.1", localPort: target.port }
        : { plugin: { type: "unix_domain_socket", unixPath: target.socket } }),
    })),
    visitors: visitors.map(visitorTable),
  });
}

/** The configuration of a frpc that visits only. */
export const visitorConfiguration = (server: FrpServer, visitors: readonly FrpVisitor[]): string => frpcConfiguration(server, [], visitors);

const visitorTable = ({ name, type, secret, server, address, port, fallback }: FrpVisitor): TomlTable => ({
  name,
  type,
  serverName: server,
  secretKey: secret,
  bindAddr: address,
  bindPort: port,
  ...(type === "xtcp" ? { keepTunnelOpen: false, fallbackTo: fallback?.to, fallbackTimeoutMs: fallback?.timeoutMs } : {}),
});

export interface FrpsOptions {
  readonly port: number;
  readonly address?: string;
  readonly token: string | null;
  /** Where its web page is; none when left out. Only builds with a page have one. */
  readonly dashboardPort?: number;
}

/** The configuration of a frps. Format: frp 0.69.1, pkg/config/v1/server.go. */
export const frpsConfiguration = ({ port, address = "0.0.0.0", token, dashboardPort }: FrpsOptions): string =>
  tomlOf({
    bindAddr: address,
    bindPort: port,
    auth: auth(token),
    log: { to: "console", level: "info", disablePrintColor: true },
    // Why a login is refused is for whoever runs the server.
    detailedErrorsToClient: false,
    transport: { tcpMux: true, tcpMuxKeepaliveInterval: KEEPALIVE_SECONDS },
    webServer: dashboardPort === undefined ? undefined : { addr: "127.0.0.1", port: dashboardPort },
  });
