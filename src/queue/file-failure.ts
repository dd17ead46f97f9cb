import { RelayError } from "../domain/errors.ts";
import { fileSystemKind } from "../lib/files/file-system.ts";

const LOCAL_DISK_HINT = "stop the process that has it open, or set CLIO_RELAY_CORE_DIR to a directory on a local disk";

/** queue_unavailable for a file of the queue. Names the file system, because that is what usually stands in the way. */
export function unusable(file: string, reason: string, what: string, cause?: unknown): RelayError {
  const kind = fileSystemKind(file);
  const data = { file, file_system: kind, reason };
  return new RelayError("queue_unavailable", `${file} on ${kind} cannot be used: ${what} (${reason})`, data, LOCAL_DISK_HINT, { cause });
}

/** What a system error on a file of the queue means: no room, or not to be used there. Null for errors of another kind. */
export function fileSystemFailure(error: unknown, file: string): RelayError | null {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string" || !("syscall" in error)) return null;
  if (error.code === "ENOSPC" || error.code === "EDQUOT") {
    return new RelayError("storage_admission_refused", `there is no room for ${file}`, { file, reason: error.code }, undefined, {
      cause: error,
    });
  }
  return unusable(file, error.code, "the system refuses it", error);
}
