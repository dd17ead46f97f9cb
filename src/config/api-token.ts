import { randomBytes } from "node:crypto";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { createFileExclusive, makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { type Environment, variable } from "./environment.ts";
import { readPrivateFile } from "./private-file.ts";
import { parseRelayToken } from "./relay-token.ts";

const MAX_BYTES = 4_096;

type Owner = Pick<Environment, "uid" | "platform">;

/**
 * The token of the API on TCP.
 *
 * @throws RelayError configuration_error where the file is not there, has none, or is open to others
 */
export function readApiToken(file: string, env: Owner): string {
  const text = readPrivateFile(file, MAX_BYTES, env);
  if (text !== null) return parseRelayToken(text, file);
  throw new RelayError(
    "configuration_error",
    `${file} is to have the token of the API, and is not there`,
    { path: file },
    "clio-relay api rotate-token",
  );
}

/** 256 random bits. */
const newToken = (): string => randomBytes(32).toString("base64url");

/** Put a token of random bits into a file that is not there yet. */
export function makeApiToken(file: string): void {
  makePrivateDirectory(path.dirname(file));
  createFileExclusive(file, `${newToken()}\n`);
}

/** Replace the token by another one of random bits. */
export function rotateApiToken(file: string): void {
  makePrivateDirectory(path.dirname(file));
  writeFileAtomic(file, `${newToken()}\n`);
}

/**
 * Put the token that CLIO_RELAY_API_TOKEN holds into the file; nothing happens without that variable.
 *
 * @throws RelayError configuration_error where the variable is no token
 */
export function takeApiToken(file: string, env: Environment): void {
  const given = variable(env, "CLIO_RELAY_API_TOKEN");
  if (given === undefined) return;
  const token = parseRelayToken(given, "CLIO_RELAY_API_TOKEN");
  if (readPrivateFile(file, MAX_BYTES, env)?.trim() === token) return;
  makePrivateDirectory(path.dirname(file));
  writeFileAtomic(file, `${token}\n`);
}
