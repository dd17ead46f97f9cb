import fs from "node:fs";
import path from "node:path";
import { Handle, type Read, readDocument } from "../../../../execution/jarvis/documents.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import { logFile } from "../../../../execution/spool-records.ts";
import { openRegular } from "../../../../lib/files/regular-file.ts";

/** The last line of a log is looked for in so many bytes. */
const TAIL_BYTES = 64 * 1024;

/**
 * The handle that a run prints last, and its words otherwise: the last message of JARVIS', or the line that the handle was looked for in. `read` is null where the
 * log has no last line.
 *
 * @param length bytes of the log that its shim wrote
 */
export function readHandle(
  directory: string,
  executionId: string,
  length: number,
): { readonly read: Read<Handle> | null; readonly line: string } {
  const lines = lastLinesOf(directory, length);
  const line = lines.findLast((each) => each.trim() !== "")?.trim() ?? "";
  return { read: line === "" ? null : readDocument(Handle, line, executionId), line: (messageIn(lines) ?? line).slice(0, 1_000) };
}

/** Lines that a message takes at most. */
const MESSAGE_LINES = 6;

/** JARVIS' last message of a failure: several lines where PyYAML tells of a place, and an empty one before the help of its command. */
function messageIn(lines: readonly string[]): string | null {
  const at = lines.findLastIndex((line) => line.startsWith("Error: "));
  if (at < 0) return null;
  const message = lines.slice(at, at + MESSAGE_LINES).map((line) => line.trim());
  const end = message.indexOf("");
  return message.slice(0, end < 0 ? MESSAGE_LINES : end).join(" ");
}

function lastLinesOf(directory: string, length: number): string[] {
  const opened = ofAttemptFile(path.join(directory, logFile("stdout")), openRegular, "absent" as const);
  if (typeof opened === "string") return [];
  const { fd } = opened;
  const size = Math.min(opened.size, length);
  try {
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const read = fs.readSync(fd, tail, 0, tail.length, size - tail.length);
    return tail.subarray(0, read).toString("utf8").split("\n");
  } finally {
    fs.closeSync(fd);
  }
}
