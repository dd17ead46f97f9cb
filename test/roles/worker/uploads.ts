import { expect } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type ErrorCode, isRelayError, type RelayError } from "../../../src/domain/errors.ts";
import type { ContentKey, UploadKey } from "../../../src/domain/input.ts";
import { inputPath } from "../../../src/execution/input-place.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { InputUploads } from "../../../src/roles/worker/input-uploads.ts";
import type { PartFlushes } from "../../../src/roles/worker/part-flushes.ts";

export const DATA = Buffer.from(Array.from({ length: 5_000 }, (_, n) => (n * 7 + (n >> 8)) & 0xff));
export const KEY: ContentKey = { sha256: sha256Hex(DATA), size_bytes: DATA.length };

/** Uploads into a spool in which there is room, unless the test says otherwise. */
export const uploadsIn = (
  spoolDir: string,
  more: { predecessorsMs?: number; admit?: (bytes: number) => void; flushes?: PartFlushes } = {},
) => new InputUploads({ spoolDir, clock: systemClock, admit: () => undefined, ...more });

/** The bytes from an offset to another, sent as one piece. */
export const piece = (uploads: InputUploads, from: number, to: number, bytes: Uint8Array = DATA.subarray(from, to), key: UploadKey = KEY) =>
  uploads.piece(key, from, async () => bytes);

/** The refusal of this code that is expected. */
export async function refused(promise: Promise<unknown>, code: ErrorCode): Promise<RelayError> {
  const failure = await promise.then(
    () => "nothing was refused",
    (error: unknown) => error,
  );
  expect(isRelayError(failure) ? failure.code : failure).toBe(code);
  return failure as RelayError;
}

export const partOf = (spool: string, key = KEY) => path.join(spool, "inputs", `${key.sha256}-${key.size_bytes}.part`);
export const contentOf = (spool: string, name: string) => inputPath(spool, KEY.sha256, name);
export const modeOf = (file: string): number => fs.lstatSync(file).mode & 0o777;

/** A spool with the content in it. */
export async function complete(spool: string): Promise<InputUploads> {
  const uploads = uploadsIn(spool);
  await uploads.take(KEY, DATA);
  return uploads;
}
