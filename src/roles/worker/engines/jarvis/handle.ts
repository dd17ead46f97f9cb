import fs from "node:fs";
import path from "node:path";
import { Handle, type Read, readDocument } from "../../../../execution/jarvis/documents.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import { logFile } from "../../../../execution/spool-records.ts";
import { openRegular } from "../../../../lib/regular-file.ts";

/** The last line of a log is looked for in so many bytes. */
const TAIL_BYTES = 64 * 1024;

/**
 * The handle that a run prints last, and the line that it was looked for in; `read` is null where the log has no last line.
 *
 * @param length bytes of the log that its shim wrote
 */
export function readHandle(
  directory: string,
  executionId: string,
  length: number,
): { readonly read: Read<Handle> | null; readonly line: string } {
  const line = lastLineOf(directory, length);
  return { read: line === "" ? null : readDocument(Handle, line, executionId), line: line.slice(0, 1_000) };
}

function lastLineOf(directory: string, length: number): string {
  const opened = ofAttemptFile(path.join(directory, logFile("stdout")), openRegular, "absent" as const);
  if (typeof opened === "string") return "";
  const { fd } = opened;
  const size = Math.min(opened.size, length);
  try {
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const read = fs.readSync(fd, tail, 0, tail.length, size - tail.length);
    const lines = tail.subarray(0, read).toString("utf8").split("\n");
    return lines.findLast((line) => line.trim() !== "")?.trim() ?? "";
  } finally {
    fs.closeSync(fd);
  }
}
