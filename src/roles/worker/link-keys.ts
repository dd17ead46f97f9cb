import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/atomic-file.ts";
import { lineOfPublicKey, publicKeyFromLine, publicKeyOf } from "../../transport/session/keys.ts";
import { ownKey, privateText } from "../own-key.ts";
import { hostKeyFile } from "./host-key-print.ts";

const MAX_CLIENTS = 256;

const clientsFile = (coreDir: string): string => path.join(coreDir, "link-authorized-keys");

/**
 * The worker's private key in sessions of its own, in the format of OpenSSH; made where there is none. Of several that make one at once, one is the key.
 *
 * @throws RelayError configuration_error where something else lies in its place, or others may read it
 */
export const hostKey = (coreDir: string, comment: string): string => ownKey(hostKeyFile(coreDir), comment);

/** The public half, in the format of RFC 4253, section 6.6. @throws RelayError configuration_error */
export const hostPublicKey = (coreDir: string, comment: string): Buffer => publicKeyOf(hostKey(coreDir, comment));

/** Keys of desktops that may come in. @throws RelayError configuration_error */
export function allowedClients(coreDir: string): readonly Buffer[] {
  return linesOf(coreDir).map(publicKeyFromLine);
}

/**
 * Let desktops in besides those that may come in already. Lines are as authorized_keys has them.
 *
 * @returns whether there was one that could not before
 * @throws RelayError configuration_error
 */
export function allowClients(coreDir: string, lines: readonly string[]): boolean {
  makePrivateDirectory(coreDir);
  const before = linesOf(coreDir);
  const known = new Set(before.map((line) => lineOfPublicKey(publicKeyFromLine(line))));
  const added = lines.filter((line) => {
    const key = lineOfPublicKey(publicKeyFromLine(line));
    return known.has(key) ? false : known.add(key) !== undefined;
  });
  if (added.length === 0) return false;
  if (before.length + added.length > MAX_CLIENTS) {
    throw new RelayError("configuration_error", `${clientsFile(coreDir)} would have more than ${MAX_CLIENTS} keys`);
  }
  writeFileAtomic(clientsFile(coreDir), `${[...before, ...added].join("\n")}\n`);
  return true;
}

const linesOf = (coreDir: string): string[] =>
  (privateText(clientsFile(coreDir)) ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
