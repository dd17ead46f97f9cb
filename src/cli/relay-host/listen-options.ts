import path from "node:path";
import { readPem } from "../../config/pem.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Entrance } from "../../roles/relay-host/relay-host.ts";
import { type Reader, text } from "../values.ts";
import { type FlagValues, list, option } from "../verb.ts";
import { listenAddress } from "./listen-address.ts";

const authorityName: Reader<string> = {
  label: "HOST:PORT",
  form: "a name with its port, as those who dial have them: relay.example.edu:443",
  read: (given) => (/^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253}):\d{1,5}$/i.test(given) ? given.toLowerCase() : undefined),
};
const fieldName: Reader<string> = {
  label: "NAME",
  form: "the name of a field of HTTP",
  read: (given) => (/^[A-Za-z0-9-]{1,64}$/.test(given) ? given : undefined),
};

/** Where and for whom a relay-host is. */
export const LISTEN = {
  listen: list(listenAddress, "Listen with TLS, for wss and tls; needs --tls-cert and --tls-key"),
  "tls-cert": option(text("FILE"), "Certificate chain in PEM, for --listen"),
  "tls-key": option(text("FILE"), "Its private key in PEM"),
  "listen-ws": list(listenAddress, "Listen without TLS, for an HTTPS edge before it, or ws"),
  "listen-tcp": list(listenAddress, "Listen without TLS, for tcp"),
  name: list(authorityName, "Take only those who dialed this name"),
  "edge-address-header": option(
    fieldName,
    "With --listen-ws: the field in which the edge says whence a request came, X-Forwarded-For or CF-Connecting-IP",
  ),
} as const;

const SERVES = "--listen :443 with --tls-cert and --tls-key serves by itself, --listen-ws 127.0.0.1:8080 behind an HTTPS edge";

/**
 * What options say, with files read.
 *
 * @throws RelayError usage; configuration_error
 */
export function entrances(flags: FlagValues<typeof LISTEN>, cwd: string): Entrance[] {
  const { listen, "listen-ws": ws, "listen-tcp": tcp } = flags;
  if (listen.length + ws.length + tcp.length === 0)
    throw new RelayError("usage", "--listen, --listen-ws or --listen-tcp is missing", {}, SERVES);
  if (flags["edge-address-header"] !== undefined && ws.length === 0)
    throw new RelayError("usage", "--edge-address-header needs --listen-ws");
  const [cert, key] = [flags["tls-cert"], flags["tls-key"]];
  if (listen.length > 0 && (cert === undefined || key === undefined))
    throw new RelayError("usage", "--listen needs --tls-cert and --tls-key");
  if (listen.length === 0 && (cert !== undefined || key !== undefined))
    throw new RelayError("usage", "--tls-cert and --tls-key need --listen");
  const tls =
    cert === undefined || key === undefined
      ? null
      : { cert: readPem(path.resolve(cwd, cert), "CERTIFICATE"), key: readPem(path.resolve(cwd, key), "PRIVATE KEY") };
  return [
    ...listen.map((address) => ({ kind: "tls" as const, address, tls })),
    ...ws.map((address) => ({ kind: "ws" as const, address, tls: null })),
    ...tcp.map((address) => ({ kind: "tcp" as const, address, tls: null })),
  ];
}
