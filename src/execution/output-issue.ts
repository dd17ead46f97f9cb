import type { ErrorCode } from "../domain/errors.ts";

/** One thing that kept an output from being collected as it was asked for. */
export interface OutputIssue {
  /** The declared pattern that was being looked for. */
  readonly pattern: string;
  /** Path below the working directory, or the pattern where nothing was found. Bytes that are not UTF-8 appear as U+FFFD. */
  readonly name: string;
  /**
   * `missing`: nothing matches. `path_escapes_root`: a symbolic link on the way leaves the working directory. `artifact_changed`: it
   * changed twice while it was read. `artifact_unreadable`: the system refuses, or its name is not UTF-8. `not_a_file`: a directory, pipe, socket or device.
   * `limit_reached`: more files or entries than may be looked at; the rest was not. `not_stored`: no room for a copy, so it is
   * referenced in place. `canceled`: somebody wanted no more of the job before all outputs were collected.
   */
  readonly reason:
    | "missing"
    | "not_a_file"
    | "limit_reached"
    | "not_stored"
    | "canceled"
    | Extract<ErrorCode, "path_escapes_root" | "artifact_changed" | "artifact_unreadable">;
  readonly detail: string;
}
