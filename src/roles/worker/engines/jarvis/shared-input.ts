import fs from "node:fs";
import path from "node:path";
import { inputPath } from "../../../../execution/input-place.ts";
import { besideName } from "../../../../lib/files/atomic-file.ts";
import type { Fence } from "../../../../queue/store.ts";

/** Where a pipeline in an allocation has its own copies of staged files, below the spool that compute nodes see. */
const PLACE = "pipelines";

/**
 * Have an attempt's own copy of a staged file where compute nodes see it.
 *
 * @returns its path
 * @throws the system's error
 */
export async function sharedInput(
  source: string,
  sharedSpoolDir: string,
  { job_id, attempt }: Fence,
  { sha256, name }: { readonly sha256: string; readonly name: string },
): Promise<string> {
  const target = inputPath(path.join(sharedSpoolDir, PLACE, `${job_id}-${attempt}`), sha256, name);
  const temporary = besideName(target, ".tmp");
  await fs.promises.mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
  try {
    await fs.promises.copyFile(source, temporary, fs.constants.COPYFILE_FICLONE);
    await fs.promises.chmod(temporary, 0o400);
    await fs.promises.rename(temporary, target);
  } catch (error) {
    await fs.promises.rm(temporary, { force: true });
    throw error;
  }
  return target;
}
