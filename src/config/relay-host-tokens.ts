import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { readSmallFile } from "../lib/files/regular-file.ts";
import { type Environment, variable } from "./environment.ts";
import { readPrivateFile } from "./private-file.ts";
import { parseRelayToken, relayToken } from "./relay-token.ts";

/** Tokens that one relay-host may know: the one that is in use, and those that come and go. */
const MAX_TOKENS = 16;
const MAX_BYTES = 16 * 1024;

/**
 * The tokens that let somebody into a relay-host: one a line, empty lines and lines that begin with `#` aside.
 *
 * @param file a private file, or a credential that the service manager hands over (systemd.exec(5), LoadCredential); null: CLIO_RELAY_HOST_TOKEN has one
 * @throws RelayError configuration_error where there is none, one is too short, or the file is open to others
 */
export function relayHostTokens(env: Environment, file: string | null): string[] {
  if (file === null && variable(env, "CLIO_RELAY_HOST_TOKEN") === undefined) {
    throw new RelayError(
      "configuration_error",
      "a relay-host takes nobody without a token, and has none",
      {},
      "--token-file FILE names a private file with it, CLIO_RELAY_HOST_TOKEN has it otherwise; openssl rand -hex 32 makes one",
    );
  }
  if (file === null) return [relayToken(env, null)];
  const text = isCredential(env, file) ? readSmallFile(file, MAX_BYTES) : readPrivateFile(file, MAX_BYTES, env);
  if (text === null)
    throw new RelayError("configuration_error", `${file} is to have the relay-host's tokens, and is not there`, { path: file });
  const lines = text.split("\n").map((line, index) => [line.trim(), index + 1] as const);
  const tokens = lines
    .filter(([line]) => line !== "" && !line.startsWith("#"))
    .map(([line, number]) => parseRelayToken(line, `line ${number} of ${file}`));
  if (tokens.length === 0) throw new RelayError("configuration_error", `${file} has no token`, { path: file });
  if (tokens.length > MAX_TOKENS) {
    throw new RelayError("configuration_error", `${file} has ${tokens.length} tokens, more than ${MAX_TOKENS}`, { path: file });
  }
  return tokens;
}

/** Whether only this service and root can read it, whoever owns it. */
const isCredential = (env: Environment, file: string): boolean => path.dirname(file) === variable(env, "CREDENTIALS_DIRECTORY");
