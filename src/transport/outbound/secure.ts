import net from "node:net";
import tls from "node:tls";
import type { RelayError } from "../../domain/errors.ts";
import { layerFailure } from "./failure.ts";

/** What is wrong with a certificate, by the codes of OpenSSL's X509_verify_cert_error_string(3) and of Node. */
const WRONG: Readonly<Record<string, "name" | "expired" | "not_yet_valid" | "unknown_issuer">> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "name",
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not_yet_valid",
  UNABLE_TO_GET_ISSUER_CERT: "unknown_issuer",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown_issuer",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown_issuer",
  DEPTH_ZERO_SELF_SIGNED_CERT: "unknown_issuer",
  SELF_SIGNED_CERT_IN_CHAIN: "unknown_issuer",
};
const SAID = {
  name: ["is for another name", "dial it by a name that its certificate has"],
  expired: ["has expired", "it has to be renewed there; a clock that is wrong here looks the same"],
  not_yet_valid: ["is not valid yet", "look at the clock of this machine"],
  unknown_issuer: [
    "is by nobody who is trusted",
    "a site with an authority of its own gives out a file of it: ca_file in config.toml, SSL_CERT_FILE, or --relay-ca-file for a relay-host, names it",
  ],
} as const;

export interface SecureRequest {
  /** Who must be at the other side: a name or an address. */
  readonly host: string;
  readonly port: number;
  /** Certificates of those that may vouch for it. */
  readonly ca: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * TLS (1.2 or 1.3) on a connection that is there, with the server's certificate verified: there is no way without. The name is sent (SNI, RFC 6066, section
 * 3), unless it is an address.
 *
 * @throws RelayError certificate_refused, with `certificate` saying what is wrong with it; tls_failed; the signal's reason
 */
export function secure(socket: net.Socket, { host, port, ca, signal }: SecureRequest): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const secured = tls.connect({
      socket,
      ca: [...ca],
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
      ...(net.isIP(host) === 0 ? { servername: host } : { host }),
    });
    const done = (error: unknown): void => {
      signal.removeEventListener("abort", aborted);
      for (const event of ["error", "close"]) secured.off(event, event === "error" ? failed : closed);
      if (error === null) {
        resolve(secured);
        return;
      }
      secured.on("error", () => undefined);
      secured.destroy();
      socket.destroy();
      reject(error);
    };
    const aborted = (): void => done(signal.reason);
    const failed = (error: Error): void => done(tlsFailure(host, port, error));
    const closed = (): void => done(tlsFailure(host, port, null));
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    secured.once("secureConnect", () => {
      // Said once more than need be: what follows trusts it.
      if (secured.authorized) done(null);
      else done(tlsFailure(host, port, secured.authorizationError));
    });
    secured.on("error", failed);
    secured.on("close", closed);
  });
}

function tlsFailure(host: string, port: number, error: unknown): RelayError {
  const code = error === null ? "closed" : String((error as NodeJS.ErrnoException).code ?? (error as Error).message ?? error).slice(0, 200);
  const wrong = WRONG[code];
  const place = `${host}, port ${port},`;
  if (wrong !== undefined) {
    const [said, hint] = SAID[wrong];
    return layerFailure("tls", "certificate_refused", `the certificate of ${place} ${said} (${code})`, {
      data: { host, port, certificate: wrong },
      hint,
      cause: error,
    });
  }
  const what = code === "closed" ? "closed the connection" : `failed: ${code}`;
  return layerFailure("tls", "tls_failed", `TLS with ${place} ${what}`, { data: { host, port, tls: code }, cause: error });
}
