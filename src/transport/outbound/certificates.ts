import tls from "node:tls";
import { RelayError } from "../../domain/errors.ts";
import { readSmallFile } from "../../lib/files/regular-file.ts";

const MAX_BYTES = 8 * 1024 * 1024;
const PEM = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/;

/** A file of certificates, and who has named it. */
export interface CaFile {
  /** The setting or variable. */
  readonly from: string;
  readonly path: string;
}

/** The files of certification authorities that a setting, the usual variables and what is met there name, besides the system's own. */
export function caFiles(
  setting: string | null,
  variables: Readonly<Record<string, string | undefined>>,
  relayCaFile: string | null = null,
): CaFile[] {
  const named: readonly (readonly [string, string | null | undefined])[] = [
    ["relay_ca_file", relayCaFile],
    ["ca_file", setting],
    ["SSL_CERT_FILE", variables["SSL_CERT_FILE"]],
    ["NODE_EXTRA_CA_CERTS", variables["NODE_EXTRA_CA_CERTS"]],
  ];
  return named.flatMap(([from, path]) => (path === null || path === undefined || path === "" ? [] : [{ from, path }]));
}

/**
 * Certificates of those that may vouch for a server: the ones that come with the runtime, the system's, and those of the files, which are read anew
 * each time since sites replace them.
 *
 * @throws RelayError configuration_error where a file that is named is not there or has none
 */
export function authorities(files: readonly CaFile[]): string[] {
  const own = files.map(({ from, path }) => {
    let text: string | null;
    try {
      text = readSmallFile(path, MAX_BYTES);
    } catch (cause) {
      throw new RelayError("configuration_error", `${from} names ${path}, which cannot be read`, { path, setting: from }, undefined, {
        cause,
      });
    }
    if (text === null || !PEM.test(text)) {
      const what = text === null ? "is not there" : "has no certificate in PEM";
      throw new RelayError("configuration_error", `${from} names ${path}, which ${what}`, { path, setting: from });
    }
    return text;
  });
  return [...new Set([...tls.rootCertificates, ...systemAuthorities()]), ...own];
}

let system: readonly string[] | undefined;
/** A system without any has none that are wrong. */
function systemAuthorities(): readonly string[] {
  system ??= tls.getCACertificates("system");
  return system;
}
