import { RelayError } from "./errors.ts";

/** How the bytes travel to a relay-host. */
export const RELAY_SCHEMES = ["wss", "ws", "tls", "tcp"] as const;
export type RelayScheme = (typeof RELAY_SCHEMES)[number];

/** Where a relay-host is met. */
export interface RelayUrl {
  readonly scheme: RelayScheme;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** What stands before `/meet` in the WebSocket's request target: empty, or a path without a slash at its end. */
  readonly prefix: string;
  /** `HOST:PORT`, as the two sides of a meeting sign it. */
  readonly authority: string;
  /** The one spelling of it: host in lower case, no default port, no slash at the end. */
  readonly text: string;
}

/** Ports that need not be said. */
const DEFAULT_PORT: Readonly<Record<RelayScheme, number>> = { wss: 443, ws: 80, tls: 443, tcp: 7_000 };
const MAX_LENGTH = 1_024;
/** RFC 3986, without user information, query and fragment: what is secret does not belong there, and nothing else is needed. */
export const RELAY_URL =
  /^(wss|ws|tls|tcp):\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?)(?::(\d{1,5}))?(\/[A-Za-z0-9\-._~!$&'()*+,;=:/%]{0,512})?$/i;

/**
 * Read the URL of a relay-host: `wss://HOST[:PORT][/PATH]`, `ws://…`, `tls://HOST[:PORT]`, `tcp://HOST[:PORT]`.
 *
 * @throws RelayError configuration_error, which does not repeat a text that may hold a secret
 */
export function parseRelayUrl(text: string): RelayUrl {
  const parts = text.length > MAX_LENGTH ? null : RELAY_URL.exec(text);
  if (parts === null) throw refused(/[@?#]/.test(text) ? "it must have no user, password, query or fragment" : "it is none");
  const scheme = parts[1]!.toLowerCase() as RelayScheme;
  const host = parts[2]!.toLowerCase().replace(/^\[|\]$/g, "");
  const port = parts[3] === undefined ? DEFAULT_PORT[scheme] : Number(parts[3]);
  if (port < 1 || port > 65_535) throw refused(`there is no port ${port}`);
  const prefix = (parts[4] ?? "").replace(/\/+$/, "");
  if (prefix !== "" && (scheme === "tls" || scheme === "tcp")) throw refused(`${scheme} has no path`);
  const shown = host.includes(":") ? `[${host}]` : host;
  const place = port === DEFAULT_PORT[scheme] ? shown : `${shown}:${port}`;
  return { scheme, host, port, prefix, authority: `${shown}:${port}`, text: `${scheme}://${place}${prefix}` };
}

const refused = (why: string): RelayError =>
  new RelayError(
    "configuration_error",
    `this is no URL of a relay-host: ${why}`,
    {},
    "wss://HOST[:PORT][/PATH], ws://…, tls://HOST[:PORT] or tcp://HOST[:PORT]",
  );
