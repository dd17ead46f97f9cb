import { isIP } from "node:net";
import { RelayError } from "../../domain/errors.ts";
import { CREDENTIALS, shownToken } from "./bearer.ts";
import type { Secret } from "./identity.ts";

/** What lets requests to a TCP listener pass. */
export interface Access {
  /** The token as it is now; null: nobody is let in. */
  readonly token: () => string | null;
  /** Whether a Host field names this listener. */
  readonly names: (host: string) => boolean;
  /** Origins whose pages may use it. */
  readonly origins: ReadonlySet<string>;
  /** By what the listener proves who it is to a client of this program; null where it does not. */
  readonly identity: Secret | null;
  /** Whether it is the listener that others are let in through, who do not decide on it. */
  readonly foreign: boolean;
}

/**
 * Let a request pass: it must name the listener as its host (a page of another site cannot, whatever its name resolves to), come from no page but an allowed one and,
 * but for what is open, carry the token.
 *
 * @param open whether the route is answered without a token
 * @throws RelayError host_refused, origin_refused, authentication_required
 */
export function admit(access: Access, { headers }: Request, open: boolean): void {
  if (!access.names(headers.get("host") ?? "")) throw new RelayError("host_refused", "the Host header names another server");
  const origin = headers.get("origin");
  if (origin !== null && !access.origins.has(origin)) throw new RelayError("origin_refused", "pages of that origin may not use this");
  if (open) return;
  const token = access.token();
  if (token === null || shownToken(headers, token) !== "right") {
    throw new RelayError("authentication_required", "the token is missing or wrong", {}, access.foreign ? SHOWN_BY : undefined);
  }
  // It is for this process only.
  for (const name of CREDENTIALS) headers.delete(name);
}

const SHOWN_BY = "Authorization: Bearer TOKEN; clio-relay api status, on the listener's machine, names the file that holds it";

/** Where a listener listens, and what else leads to it. */
export interface ListenerNames {
  /** An address in digits, without brackets, or a name. */
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** `NAME` or `NAME:PORT`, in lower case. */
  readonly allowed: readonly string[];
}

const EVERYWHERE: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Whether a Host field (RFC 9110, section 7.2) names a listener. An address in digits cannot be made to lead elsewhere as a name can, so that on all
 * addresses each is taken.
 */
export function namesOf({ host, port, tls, allowed }: ListenerNames): (field: string) => boolean {
  const own = host.includes(":") ? `[${host.toLowerCase()}]` : host.toLowerCase();
  const everywhere = EVERYWHERE.has(host);
  const hosts = new Set([own, ...(everywhere || LOOPBACK.includes(own) || own.startsWith("127.") ? LOOPBACK : [])]);
  const ports = port === (tls ? 443 : 80) ? ["", `:${port}`] : [`:${port}`];
  const any = new Set(allowed);
  return (field) => {
    const said = field.toLowerCase();
    const [, name = "", behind = ""] = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(:\d{1,5})?$/.exec(said) ?? [];
    if (name === "") return false;
    if (any.has(said) || any.has(name)) return true;
    if (!ports.includes(behind)) return false;
    return hosts.has(name) || (everywhere && isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0);
  };
}
