import fs from "node:fs";
import * as v from "valibot";
import type { Address } from "../../api/client/http-peer.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { readPrivateFile } from "../../config/private-file.ts";
import { ProcessIdentity } from "../../domain/attempt.ts";
import { isRelayError } from "../../domain/errors.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { isAlive } from "../../lib/system/process-identity.ts";

const MAX_BYTES = 64 * 1024;

/** What a running daemon leaves for clients: who it is and, where it listens on loopback, address and token of this start. */
const Record = v.object({
  process: ProcessIdentity,
  version: v.string(),
  tcp: v.nullable(v.strictObject({ url: v.pipe(v.string(), v.startsWith("http://127.0.0.1:")), token: v.string() })),
});
export type DaemonRecord = v.InferOutput<typeof Record>;

/** The record of the daemon that runs, or null. What a daemon that was killed left behind counts as none. */
export function readDaemonRecord(paths: Paths, env: Environment): DaemonRecord | null {
  const text = readPrivateFile(paths.desktopAddress, MAX_BYTES, env);
  if (text === null) return null;
  try {
    const result = v.safeParse(Record, JSON.parse(text));
    return result.success && isAlive(result.output.process) ? result.output : null;
  } catch {
    return null;
  }
}

const serialized = (record: DaemonRecord): string => `${JSON.stringify(record)}\n`;

/** Publish the record, readable by this user only. */
export const writeDaemonRecord = (paths: Paths, record: DaemonRecord): void => writeFileAtomic(paths.desktopAddress, serialized(record));

/** Whether the file is as this daemon wrote it. */
export function isPublished(paths: Paths, env: Environment, record: DaemonRecord): boolean {
  try {
    return readPrivateFile(paths.desktopAddress, MAX_BYTES, env) === serialized(record);
  } catch (error) {
    if (isRelayError(error)) return false;
    throw error;
  }
}

/** Withdraw it. Where the directory was taken away and made anew, the file there may be another daemon's, and stays. */
export function removeDaemonRecord(paths: Paths, env: Environment, record: DaemonRecord): void {
  if (isPublished(paths, env, record)) fs.rmSync(paths.desktopAddress, { force: true });
}

/** Where a daemon of this record listens. */
export const addressOf = (paths: Paths, record: Pick<DaemonRecord, "tcp"> | null): Address =>
  record?.tcp ? { kind: "tcp", ...record.tcp } : { kind: "unix", path: paths.desktopSocket };
