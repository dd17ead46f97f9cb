import { RelayError } from "../../../domain/errors.ts";
import type { Setting } from "./read.ts";

/** The refusal of a directive, with its place. */
export function unsupported(directive: string, because: string, { file, line }: Pick<Setting, "file" | "line">): RelayError {
  return new RelayError("ssh_config_unsupported", `${file}${line > 0 ? `, line ${line},` : ""} sets ${directive}: ${because}`, {
    directive,
    path: file,
    ...(line > 0 ? { line } : {}),
  });
}
