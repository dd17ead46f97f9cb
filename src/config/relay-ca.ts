import { RelayError } from "../domain/errors.ts";
import { CA_MAX } from "../domain/frp.ts";
import { readPem } from "./pem.ts";

/**
 * The certification authorities that vouch for a cluster's relay-host besides those of the system, as bootstrap brings them to the cluster.
 *
 * @param file absolute
 * @throws RelayError configuration_error where it is not there, has no certificate in PEM, or is longer than a configuration carries
 */
export function relayAuthorities(file: string): string {
  const text = readPem(file, "CERTIFICATE");
  if (text.length <= CA_MAX) return text;
  throw new RelayError(
    "configuration_error",
    `${file} has more than ${CA_MAX} characters: only the relay-host's own authority belongs there`,
    {
      path: file,
    },
  );
}
