import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { looseText, text } from "../domain/primitives.ts";
import { makePrivateDirectory, writeFileAtomic } from "../lib/atomic-file.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import { readPrivateFile } from "./private-file.ts";

const MAX_BYTES = 512 * 1024;

/** A secret of frp: whatever frp takes, but no control characters, and not so much that it would be a file by mistake. */
export const FrpSecret = v.pipe(text(1_024), v.regex(/^[^\p{Cc}]+$/u, "must be on one line"));

/** What is secret about a cluster's way through frps, on both sides. */
export const FrpRoom = v.strictObject({
  schema_version: v.literal("clio-relay.frp-room.v1"),
  /** What the proxies are called after: 32 hexadecimal digits. */
  name: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  /** Of frps; null: it wants none. */
  token: v.nullable(FrpSecret),
  /** Of the proxies: what a visitor has to know. */
  secret: FrpSecret,
  /** Certification authorities in PEM for wss, in place of those that everybody trusts; null: those. */
  ca: v.nullable(looseText(256 * 1024)),
});
export type FrpRoom = v.InferOutput<typeof FrpRoom>;

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
export const readRoom = (paths: Pick<Paths, "configDir">, cluster: string, env: Pick<Environment, "uid" | "platform">): FrpRoom | null =>
  readRoomFile(fileOf(paths, cluster), env);

/** The same of a file of mode 0600 that somebody else names. @throws RelayError configuration_error */
export function readRoomFile(file: string, env: Pick<Environment, "uid" | "platform">): FrpRoom | null {
  const found = readPrivateFile(file, MAX_BYTES, env);
  if (found === null) return null;
  let data: unknown;
  try {
    data = JSON.parse(found);
  } catch {
    throw new RelayError("configuration_error", `${file} is not JSON`, { path: file });
  }
  const result = v.safeParse(FrpRoom, data);
  if (result.success) return result.output;
  // What is in it is not to be shown.
  throw new RelayError("configuration_error", `${file} does not fit: ${v.getDotPath(result.issues[0]) ?? "the document"}`, { path: file });
}

export function writeRoom(paths: Pick<Paths, "configDir">, cluster: string, room: FrpRoom): void {
  const file = fileOf(paths, cluster);
  makePrivateDirectory(path.dirname(file));
  writeFileAtomic(file, `${JSON.stringify(room)}\n`);
}

export const removeRoom = (paths: Pick<Paths, "configDir">, cluster: string): void => fs.rmSync(fileOf(paths, cluster), { force: true });
