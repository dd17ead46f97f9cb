import { RelayError } from "../../domain/errors.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";

/**
 * Do something that writes to the spool for a request.
 *
 * @throws RelayError storage_admission_refused where the system refuses: for want of room, or because the disk fails or may not be written; what else `work` throws
 */
export async function writingSpool<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error && "code" in error)) throw error;
    const full = isErrno(error, "ENOSPC", "EDQUOT");
    const why = full ? "the spool is full" : `the spool cannot be written (${error.code})`;
    const reason = full ? "filesystem_free_reserve" : "persistence_failure";
    const decision = { allowed: false, reason, directory: "spool", ...(full ? {} : { system_code: error.code }) };
    throw new RelayError("storage_admission_refused", why, { storage_decision: decision }, undefined, { cause: error });
  }
}
