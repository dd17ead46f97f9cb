import net from "node:net";
import { RelayError } from "../../domain/errors.ts";

/** A proxy that is asked for a tunnel (RFC 9110, section 9.3.6). */
export interface ProxyServer {
  /** Whether the way to the proxy itself is TLS. */
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  /** `user:password`, decoded; null without. */
  readonly credentials: string | null;
  /** As it may be shown: without the credentials. */
  readonly text: string;
}

/** Where a connection is to lead. */
export interface Target {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Whether what is spoken there is encrypted from its first byte: it decides between HTTP_PROXY and HTTPS_PROXY. */
  readonly tls: boolean;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** The lower-case name first, as everybody has it; an empty one says that there is none. */
function settingOf(variables: Variables, name: string): string | undefined {
  const value = variables[name.toLowerCase()] ?? variables[name];
  return value?.trim();
}

/**
 * The proxy that the environment names for a connection: HTTPS_PROXY for what is TLS, HTTP_PROXY for what is not, ALL_PROXY where those are not set;
 * none for what NO_PROXY lists. Names in lower case win.
 *
 * @throws RelayError configuration_error where a value is no proxy that can be used; it is not repeated, since it may hold a password
 */
export function proxyFor(target: Target, variables: Variables): ProxyServer | null {
  const own = target.tls ? "HTTPS_PROXY" : "HTTP_PROXY";
  const name = settingOf(variables, own) === undefined ? "ALL_PROXY" : own;
  const value = settingOf(variables, name);
  if (value === undefined || value === "" || isExempt(target, settingOf(variables, "NO_PROXY") ?? "")) return null;
  return parseProxy(name, value);
}

const PROXY = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(?:([^@/\s]*)@)?(\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?\/?$/i;

function parseProxy(name: string, value: string): ProxyServer {
  const refused = (why: string): RelayError =>
    new RelayError("configuration_error", `${name} ${why}`, { setting: name }, "http://[USER:PASSWORD@]HOST:PORT");
  const parts = PROXY.exec(value);
  if (parts === null) throw refused("is no URL of a proxy");
  const scheme = (parts[1] ?? "http").toLowerCase();
  if (scheme !== "http" && scheme !== "https") throw refused(`names a proxy of the kind ${scheme}, and only http and https are known`);
  const tls = scheme === "https";
  const host = parts[3]!.toLowerCase().replace(/^\[|\]$/g, "");
  const port = parts[4] === undefined ? (tls ? 443 : 80) : Number(parts[4]);
  if (port < 1 || port > 65_535) throw refused(`has a port ${port}, which there is not`);
  let credentials: string | null = null;
  if (parts[2] !== undefined && parts[2] !== "") {
    try {
      credentials = decodeURIComponent(parts[2]);
    } catch {
      throw refused("has a user or password with a % that is no escape");
    }
    if (/\p{Cc}/u.test(credentials)) throw refused("has a user or password with a control character");
  }
  return { tls, host, port, credentials, text: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

/**
 * Whether NO_PROXY lists a target. Its entries, separated by commas or spaces: `*`; a name, which stands for itself and everything below it, with or without a
 * dot (or `*.`) before it; an address; a range of addresses (`10.0.0.0/8`); each of the first three with `:PORT` or not.
 */
function isExempt(target: Target, list: string): boolean {
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => entry !== "" && covers(entry, target));
}

function covers(entry: string, { host, port }: Target): boolean {
  if (entry === "*") return true;
  const range = /^\[?([0-9a-f:.]+)\]?\/(\d{1,3})$/.exec(entry);
  if (range !== null) return inRange(host, range[1]!, Number(range[2]));
  const parts = net.isIP(entry) !== 0 ? [entry, entry] : /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(entry);
  if (parts === null || (net.isIP(entry) === 0 && parts[2] !== undefined && Number(parts[2]) !== port)) return false;
  const name = parts[1]!.replace(/^\[|\]$/g, "");
  if (net.isIP(name) !== 0) return sameAddress(name, host);
  const suffix = name.replace(/^\*?\./, "").replace(/\.$/, "");
  const wanted = host.replace(/\.$/, "");
  return suffix !== "" && net.isIP(host) === 0 && (wanted === suffix || wanted.endsWith(`.${suffix}`));
}

const familyOf = (address: string): "ipv4" | "ipv6" | null =>
  ({ 0: null, 4: "ipv4" as const, 6: "ipv6" as const })[net.isIP(address) as 0 | 4 | 6];

function inRange(host: string, address: string, bits: number): boolean {
  const [family, other] = [familyOf(address), familyOf(host)];
  if (family === null || other === null || bits > (family === "ipv4" ? 32 : 128)) return false;
  const block = new net.BlockList();
  block.addSubnet(address, bits, family);
  return block.check(host, other);
}

const sameAddress = (one: string, other: string): boolean => inRange(other, one, familyOf(one) === "ipv4" ? 32 : 128);
