import { RelayError } from "../domain/errors.ts";

/** What a system says of a path, in words; its codes are those of errno(3). */
const WHY: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  EISDIR: "that is a directory",
  ELOOP: "no file can have that path",
  ENAMETOOLONG: "no file can have that path",
  ENXIO: "that is no regular file",
  ENOSPC: "no space is left on its device",
  EDQUOT: "your quota of its device is used up",
  EIO: "the system cannot read it",
  ESTALE: "the system cannot read it",
};

const MISSING = ["ENOENT", "ENOTDIR"];
const FULL = ["ENOSPC", "EDQUOT"];

/** A system's code among an error's properties. */
const systemCode = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/**
 * The failure of a file that somebody has named and that cannot be used; null where the error says nothing of the file.
 *
 * @param where the file as the person knows it
 * @param error what the system's call threw
 * @param code of errno(3), where the error does not have it as its `code`
 */
export function namedFileFailure(where: string, error: unknown, code = systemCode(error)): RelayError | null {
  if (MISSING.includes(code)) return missingFile(where, error);
  if (!Object.hasOwn(WHY, code)) return null;
  const reason = FULL.includes(code) ? "storage_admission_refused" : "local_file_unusable";
  return new RelayError(reason, `${where}: ${WHY[code]}`, {}, undefined, { cause: error });
}

/** The failure of a file that somebody has named and that is not there. */
export const missingFile = (where: string, cause?: unknown): RelayError =>
  new RelayError("local_file_missing", `${where}: there is no such file`, {}, undefined, { cause });

/** The same of any error, with the system's words where there are no others. */
export const unreadableFile = (file: string, cause: unknown): RelayError =>
  namedFileFailure(file, cause) ??
  new RelayError(
    "local_file_unusable",
    `${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    { path: file },
    undefined,
    {
      cause,
    },
  );
