import { samePlace } from "../../config/paths.ts";
import { RelayError } from "../../domain/errors.ts";

const NAME = "clio-relay-registry";

/** What a client says with each request, so that it is not answered out of a registry that it did not mean. @param clustersFile absolute */
export const registryHeader = (clustersFile: string): Readonly<Record<string, string>> => ({ [NAME]: encodeURIComponent(clustersFile) });

/**
 * Refuse a request that means another registry than the one that is served. One that names none means whichever there is.
 * What was said is taken off: it is for this process only.
 *
 * @throws RelayError configuration_error that names both
 */
export function refuseOtherRegistry(headers: Headers, served: string): void {
  const said = headers.get(NAME);
  if (said === null) return;
  headers.delete(NAME);
  const meant = decoded(said);
  if (samePlace(meant, served)) return;
  throw new RelayError(
    "configuration_error",
    `the desktop daemon that runs keeps its clusters in ${served}, and this command means ${meant}`,
    { served, meant },
    "clio-relay desktop stop, and repeat it; or CLIO_RELAY_HOME=DIR for an installation with a daemon of its own",
  );
}

/** @throws RelayError http_request_malformed */
function decoded(said: string): string {
  try {
    return decodeURIComponent(said);
  } catch {
    throw new RelayError("http_request_malformed", `${NAME} is not percent-encoded UTF-8`);
  }
}
