import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { fileSystemFailure, unusable } from "../file-failure.ts";

/** SQLite's extended result code of an error, such as SQLITE_BUSY_RECOVERY (sqlite.org/rescode.html); null for other errors. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return null;
  return error.code.startsWith("SQLITE_") ? error.code : null;
}

const isOneOf = (code: string, ...primary: string[]): boolean => primary.some((p) => code === p || code.startsWith(`${p}_`));

/** Whether a statement was refused by the tables' own rules. */
export const isConstraint = (error: unknown): boolean => isOneOf(sqliteCode(error) ?? "", "SQLITE_CONSTRAINT");

/** Whether a statement met an index that does not fit its table. */
export const isWrongIndex = (error: unknown): boolean => sqliteCode(error) === "SQLITE_CORRUPT_INDEX";

/**
 * The RelayError that a failure of SQLite means for whoever uses the queue. RelayErrors pass unchanged; anything else is
 * returned as internal_error with its cause.
 */
export function relayFailure(error: unknown, file: string): RelayError {
  if (error instanceof RelayError) return error;
  const code = sqliteCode(error);
  const options = { cause: error };
  if (code === null) {
    return (
      fileSystemFailure(error, file) ?? new RelayError("internal_error", "the queue met an unexpected error", { file }, undefined, options)
    );
  }
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
    const held = isOneOf(code, "SQLITE_BUSY", "SQLITE_LOCKED")
      ? "another process has it open, or its file system does not grant locks"
      : "SQLite cannot use it there";
    return unusable(file, code, held, error);
  }
  return new RelayError("internal_error", `the queue met an unexpected error (${code})`, data, undefined, options);
}

/** queue_corrupt with what was found. The file is left as it is; the hint says what helps. */
export const corrupt = (file: string, what: string, data: Record<string, unknown> = {}, cause?: unknown): RelayError =>
  new RelayError("queue_corrupt", `the queue file ${file} is damaged: ${what}`, { file, ...data }, helpWith(file), { cause });

/** What to do about a damaged file: the command, and the newest backup where there is one. */
function helpWith(file: string): string {
  const backup = newestBackup(file);
  return `stop its worker and run clio-relay queue repair, which makes the file anew from what can be read of it and keeps the damaged one; ${
    backup === null ? "there is no backup beside it" : `a backup from ${backup.from} is ${backup.file}`
  }`;
}

function newestBackup(file: string): { readonly file: string; readonly from: string } | null {
  try {
    const directory = path.dirname(file);
    const backups = fs
      .readdirSync(directory)
      .filter((name) => name.startsWith(`${path.basename(file)}.v`) && name.endsWith(".bak"))
      .map((name) => ({ file: path.join(directory, name), at: fs.statSync(path.join(directory, name)).mtimeMs }))
      .toSorted((a, b) => b.at - a.at);
    return backups[0] === undefined ? null : { file: backups[0].file, from: new Date(backups[0].at).toISOString() };
  } catch {
    return null;
  }
}
