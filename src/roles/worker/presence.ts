import fs from "node:fs";
import path from "node:path";
import { isId } from "../../domain/id.ts";
import { WORKER_RECORD, type WorkerRecord } from "../../domain/worker-record.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { readSmallFile } from "../../lib/files/regular-file.ts";
import { newId } from "../../lib/ids.ts";

const MAX_BYTES = 16 * 1024;

/** The worker's id, which stays the same for as long as its state directory does; made at its first start. Only the queue's owner asks. */
export function workerId(coreDir: string): string {
  const file = path.join(coreDir, "worker-id");
  const known = readSmallFile(file, MAX_BYTES)?.trim() ?? "";
  if (isId(known)) return known;
  const id = newId("worker");
  writeFileAtomic(file, `${id}\n`);
  return id;
}

const recordFile = (coreDir: string): string => path.join(coreDir, WORKER_RECORD);

/** Say that a worker serves, and where. */
export const announce = (coreDir: string, record: WorkerRecord): void =>
  writeFileAtomic(recordFile(coreDir), `${JSON.stringify(record)}\n`);

/** It serves no longer. A worker that is killed leaves its record, which names a process that is gone. */
export const withdraw = (coreDir: string): void => fs.rmSync(recordFile(coreDir), { force: true });
