import path from "node:path";
import type { ClusterEntry, LocalEntry } from "../../config/cluster-entry.ts";
import { withOutboundProxy } from "../../config/outbound-proxy.ts";
import { relayToken } from "../../config/relay-token.ts";
import { VERSION } from "../../config/version.ts";
import { RelayError } from "../../domain/errors.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import type { RelayMeeting } from "../../roles/worker/relay-joiner.ts";
import { caFiles } from "../../transport/outbound/certificates.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { relayUrl, text } from "../values.ts";
import { type FlagValues, option } from "../verb.ts";

/** Where a worker is met by desktops. */
export const RELAY = {
  "relay-host": option(relayUrl, "Relay-host at which desktops meet it; the cluster's entry may name one, too"),
  "relay-token-file": option(text("FILE"), "Private file with the relay-host's token; CLIO_RELAY_HOST_TOKEN has it where none is named"),
  "relay-ca-file": option(text("FILE"), "Certification authorities in PEM that vouch for the relay-host, besides those of the system"),
} as const;

/**
 * What options and the cluster's entry say of a relay-host; nothing where they name none.
 *
 * @throws RelayError configuration_error where there is no token; usage
 */
export function relayMeeting(
  io: Pick<CliIo, "env">,
  { settings }: Pick<Installation, "settings">,
  entry: ClusterEntry,
  flags: FlagValues<typeof RELAY>,
): { relay?: RelayMeeting } {
  const known: Pick<LocalEntry, "relay_host" | "relay_token_file" | "relay_ca_file"> = entry.mode === "local" ? entry : {};
  const url = flags["relay-host"] ?? known.relay_host;
  const [given, givenCa] = [flags["relay-token-file"], flags["relay-ca-file"]];
  if (url === undefined) {
    if (given !== undefined) throw new RelayError("usage", "--relay-token-file needs --relay-host");
    if (givenCa !== undefined) throw new RelayError("usage", "--relay-ca-file needs --relay-host");
    return {};
  }
  const file = given === undefined ? (url === known.relay_host ? (known.relay_token_file ?? null) : null) : path.resolve(io.env.cwd, given);
  const ca = givenCa === undefined ? (url === known.relay_host ? (known.relay_ca_file ?? null) : null) : path.resolve(io.env.cwd, givenCa);
  const { variables } = withOutboundProxy(io.env, settings);
  const place = () => ({
    token: relayToken(io.env, file),
    surroundings: { variables, caFiles: caFiles(settings.ca_file, io.env.variables, ca) },
    version: VERSION,
  });
  // What is missing is said at once, and not in the log of a worker that goes on.
  place();
  return { relay: { url: parseRelayUrl(url), place } };
}
