import { RelayError } from "../domain/errors.ts";
import { type Environment, variable } from "./environment.ts";
import { readPrivateFile } from "./private-file.ts";

const VARIABLE = "CLIO_RELAY_HOST_TOKEN";
/** The b64token of RFC 6750, section 2.1. */
const FORM = /^[A-Za-z0-9\-._~+/]{31,511}[A-Za-z0-9\-._~+/=]$/;
const MAX_BYTES = 4_096;
const WHERE = `--relay-token-file FILE names a private file with it; in its place, ${VARIABLE} in the environment of the command that needs it`;

/**
 * A relay-host's token in a text that has nothing else but blank space around it.
 *
 * @param source where it comes from, for errors: the text itself is never shown
 * @throws RelayError configuration_error
 */
export function parseRelayToken(text: string, source: string): string {
  const token = text.trim();
  if (FORM.test(token)) return token;
  throw new RelayError("configuration_error", `${source} has no token: 32 to 512 letters, digits and characters of -._~+/=`, { source });
}

/**
 * The token by which this side is known at a relay-host.
 *
 * @param file a private file that has it; null: the variable has
 * @throws RelayError configuration_error where there is none, or the file is open to others
 */
export function relayToken(env: Environment, file: string | null): string {
  if (file !== null) {
    const text = readPrivateFile(file, MAX_BYTES, env);
    if (text !== null) return parseRelayToken(text, file);
    throw new RelayError("configuration_error", `${file} is to have the relay-host's token, and is not there`, { path: file }, WHERE);
  }
  const text = variable(env, VARIABLE);
  if (text !== undefined) return parseRelayToken(text, VARIABLE);
  throw new RelayError("configuration_error", "there is no token for the relay-host", {}, WHERE);
}
