import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import type { Clock } from "../../lib/waiting/clock.ts";

/** How long a look that found everything well is good for, so that a thousand submissions a second do not look a thousand times. */
const GOOD_FOR_MS = 10;

/** The file systems and directories that a worker's promises rest on. */
export interface Storage {
  /**
   * Whether another job can be taken on. A spool that was removed is made again where that is sure to be its place.
   *
   * @param bytes that will be written to the spool besides
   * @throws RelayError storage_admission_refused with `storage_decision`; queue_unavailable when the queue's file is not the one that is open
   */
  admit(bytes?: number): void;
  /** The part of that which concerns the jobs that there are. @throws RelayError queue_unavailable */
  checkCore(): void;
}

interface Places {
  readonly coreDir: string;
  readonly spoolDir: string;
  /** The open queue file's name below coreDir. */
  readonly queueFile: string;
}

/**
 * Look after both places from now on; both exist.
 *
 * @param onRenewed told when the spool was made again
 */
export function storageOf(
  { coreDir, spoolDir, queueFile }: Places,
  minFreeBytes: number,
  clock: Pick<Clock, "monotonic">,
  onRenewed: (directory: string) => void,
): Storage {
  let lookAgain = Number.NEGATIVE_INFINITY;
  const file = path.join(coreDir, queueFile);
  const opened = identityOf(file);
  const spoolParent = path.dirname(spoolDir);
  const device = fs.statSync(spoolDir).dev;
  /** Where the spool is a mount of its own, its parent says nothing about it. */
  const partOfParent = fs.statSync(spoolParent).dev === device;

  const checkCore = (): void => {
    if (identityOf(file) === opened) return;
    throw new RelayError(
      "queue_unavailable",
      `${file} is not the file that this worker has open: what it commits is lost when it ends`,
      { directory: "core" },
      `stop the worker, put ${coreDir} back as it was, and start it again`,
    );
  };
  const checkSpool = (): void => {
    if (fs.statSync(spoolDir, { throwIfNoEntry: false })?.isDirectory()) return;
    // Not in the place of a link or a file, nor below a mount point that lost its file system: what is written there is hidden when it comes back.
    const nothing = fs.lstatSync(spoolDir, { throwIfNoEntry: false }) === undefined;
    if (nothing && partOfParent && deviceAbove(spoolParent) === device) {
      makePrivateDirectory(spoolDir);
      onRenewed(spoolDir);
      return;
    }
    throw new RelayError(
      "storage_admission_refused",
      `${spoolDir} is gone, or no directory`,
      { storage_decision: { allowed: false, reason: "scan_root_invalid", directory: "spool" } },
      `put ${spoolDir} back, or mount its file system`,
    );
  };
  return {
    checkCore,
    admit(bytes = 0) {
      const now = clock.monotonic();
      if (bytes === 0 && now < lookAgain) return;
      try {
        checkCore();
        checkSpool();
        checkRoom("core", coreDir, minFreeBytes);
        checkRoom("spool", spoolDir, minFreeBytes, bytes);
      } catch (error) {
        throw error instanceof RelayError ? error : unasked(error);
      }
      lookAgain = now + GOOD_FOR_MS;
    },
  };
}

/** The file system did not answer, or not to this user. */
const unasked = (error: unknown): RelayError =>
  new RelayError(
    "storage_admission_refused",
    `the places of state and spool cannot be looked at: ${error instanceof Error ? error.message : String(error)}`,
    { storage_decision: { allowed: false, reason: "filesystem_query_failed" } },
    undefined,
    { cause: error },
  );

/** Which file has a name; null when none has. */
function identityOf(file: string): string | null {
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
}

/** The device of the nearest directory that exists. */
function deviceAbove(directory: string): number {
  const stat = fs.statSync(directory, { throwIfNoEntry: false });
  return stat?.dev ?? deviceAbove(path.dirname(directory));
}

/** Bytes and names (inodes) that are free for this user. A file system that does not count its inodes says that it has none at all. */
function checkRoom(name: string, directory: string, minFreeBytes: number, wanted = 0): void {
  const { bavail, bsize, files, ffree } = fs.statfsSync(directory);
  const bytes = bavail * bsize;
  if (bytes - wanted < minFreeBytes) {
    const more = wanted === 0 ? "" : `, ${wanted} are wanted`;
    throw noRoom(name, `${directory} has ${bytes} bytes left${more}; ${minFreeBytes} must stay free`, {
      free_bytes: bytes,
      min_free_bytes: minFreeBytes,
      ...(wanted === 0 ? {} : { wanted_bytes: wanted }),
    });
  }
  if (files > 0 && ffree < LIMITS.minFreeInodes) {
    throw noRoom(name, `${directory} has room for ${ffree} more files; ${LIMITS.minFreeInodes} must stay free`, {
      free_inodes: ffree,
      min_free_inodes: LIMITS.minFreeInodes,
    });
  }
}

const noRoom = (directory: string, message: string, numbers: Readonly<Record<string, number>>): RelayError =>
  new RelayError(
    "storage_admission_refused",
    message,
    { storage_decision: { allowed: false, reason: "filesystem_free_reserve", directory, ...numbers } },
    "min_free_bytes" in numbers ? "free some space, or lower CLIO_RELAY_MIN_FREE_BYTES" : "remove some files",
  );
