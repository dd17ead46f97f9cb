import fs from "node:fs";
import path from "node:path";
import { FrpRoom } from "../domain/frp.ts";
import { makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import { readPrivateDocument } from "./private-document.ts";

const MAX_BYTES = 512 * 1024;

export const newRoom = (): FrpRoom => ({
  schema_version: "clio-relay.frp-room.v1",
  name: randomHex(16),
  token: null,
  secret: randomHex(32),
  ca: null,
});

const randomHex = (bytes: number): string => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");

const fileOf = (paths: Pick<Paths, "configDir">, cluster: string): string => path.join(paths.configDir, "frp", `${cluster}.json`);

/** The room of a cluster on the desktop; null where there is none. @throws RelayError configuration_error */
export function readRoom(paths: Pick<Paths, "configDir">, cluster: string, env: Pick<Environment, "uid" | "platform">): FrpRoom | null {
  return readPrivateDocument(FrpRoom, fileOf(paths, cluster), MAX_BYTES, env);
}

export function writeRoom(paths: Pick<Paths, "configDir">, cluster: string, room: FrpRoom): void {
  const file = fileOf(paths, cluster);
  makePrivateDirectory(path.dirname(file));
  writeFileAtomic(file, `${JSON.stringify(room)}\n`);
}

/** Where the authorities lie for a frpc of the user's own, which reads no room. */
export const authoritiesFile = (paths: Pick<Paths, "configDir">, cluster: string): string =>
  path.join(paths.configDir, "frp", `${cluster}.ca.pem`);

export function removeRoom(paths: Pick<Paths, "configDir">, cluster: string): void {
  for (const file of [fileOf(paths, cluster), authoritiesFile(paths, cluster)]) fs.rmSync(file, { force: true });
}
