import fs from "node:fs";
import path from "node:path";
import { variable } from "../../config/environment.ts";
import { relayAuthorities } from "../../config/relay-ca.ts";
import { parseRelayToken, relayToken } from "../../config/relay-token.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

const MAX_BYTES = 4_096;

/**
 * Where the token of a cluster's relay-host lies from now on: the file that is named, or one of ours with what came on standard input or is in the variable,
 * since the daemon outlives the shell that had it.
 *
 * @param given --relay-token-file
 * @param named whether a relay-host is named with it
 * @returns undefined where nothing was given
 * @throws RelayError configuration_error where what is given has no token, or is open to others
 */
export async function keptToken(
  io: Pick<CliIo, "env" | "stdin">,
  relay: Pick<Installation, "paths">,
  { cluster, given, named }: { cluster: string; given: string | undefined; named: boolean },
): Promise<string | undefined> {
  if (given !== undefined && given !== "-") {
    const file = path.resolve(io.env.cwd, given);
    relayToken(io.env, file);
    return file;
  }
  const ofVariable = named ? variable(io.env, "CLIO_RELAY_HOST_TOKEN") : undefined;
  if (given === undefined && ofVariable === undefined) return undefined;
  const token =
    given === "-"
      ? parseRelayToken(new TextDecoder().decode(await io.stdin.read(MAX_BYTES)), "standard input")
      : parseRelayToken(ofVariable ?? "", "CLIO_RELAY_HOST_TOKEN");
  const file = ownFile(relay, cluster);
  makePrivateDirectory(path.dirname(file));
  writeFileAtomic(file, `${token}\n`);
  return file;
}

/** The file of the relay-host's authorities, absolute. @throws RelayError configuration_error where it has none */
export function keptCa(io: Pick<CliIo, "env">, given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  const file = path.resolve(io.env.cwd, given);
  relayAuthorities(file);
  return file;
}

const ownFile = ({ paths }: Pick<Installation, "paths">, cluster: string): string => path.join(paths.configDir, "relay-tokens", cluster);

/** A cluster that is forgotten leaves no token that was kept for it. A file of the user's own stays. */
export function forgetToken(relay: Pick<Installation, "paths">, cluster: string): void {
  fs.rmSync(ownFile(relay, cluster), { force: true });
}
