import { RelayError } from "../../domain/errors.ts";
import { fileSystemKind } from "../../lib/file-system.ts";

const LOCAL_DISK_HINT = "stop the process that has it open, or set CLIO_RELAY_CORE_DIR to a directory on a local disk";

/** SQLite's extended result code of an error, such as SQLITE_BUSY_RECOVERY (sqlite.org/rescode.html); null for other errors. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return null;
  return error.code.startsWith("SQLITE_") ? error.code : null;
}

const isOneOf = (code: string, ...primary: string[]): boolean => primary.some((p) => code === p || code.startsWith(`${p}_`));

/**
 * The RelayError that a failure of SQLite means for whoever uses the queue. RelayErrors pass unchanged; anything else is
 * returned as internal_error with its cause.
 */
export function relayFailure(error: unknown, file: string): RelayError {
  if (error instanceof RelayError) return error;
  const code = sqliteCode(error);
  const options = { cause: error };
  if (code === null) return new RelayError("internal_error", "the queue met an unexpected error", { file }, undefined, options);
  const data = { file, sqlite: code };
  if (isOneOf(code, "SQLITE_FULL")) {
    return new RelayError(
      "storage_admission_refused",
      `the disk that holds ${file} is full; nothing was written`,
      data,
      undefined,
      options,
    );
  }
  if (isOneOf(code, "SQLITE_CORRUPT", "SQLITE_NOTADB")) return corrupt(file, "SQLite finds it malformed", data, error);
  if (
    isOneOf(code, "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")
  ) {
    return unavailable(file, code, error);
  }
  return new RelayError("internal_error", `the queue met an unexpected error (${code})`, data, undefined, options);
}

/** queue_corrupt with what was found. The file is left as it is. */
export const corrupt = (file: string, what: string, data: Record<string, unknown> = {}, cause?: unknown): RelayError =>
  new RelayError("queue_corrupt", `the queue file ${file} is damaged: ${what}`, { file, ...data }, undefined, { cause });

/** queue_unavailable: locks or the file system stand in the way. Names the file system, because that is usually the reason. */
export function unavailable(file: string, reason: string, cause?: unknown): RelayError {
  const kind = fileSystemKind(file);
  const held = isOneOf(reason, "SQLITE_BUSY", "SQLITE_LOCKED") ? "another process has it open, or " : "";
  return new RelayError(
    "queue_unavailable",
    `the queue file ${file} cannot be used (${reason}): ${held}its file system (${kind}) does not give what SQLite needs`,
    { file, file_system: kind, reason },
    LOCAL_DISK_HINT,
    { cause },
  );
}
