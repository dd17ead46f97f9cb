import fs from "node:fs";
import path from "node:path";
import type { AgentAdapter } from "../../../../domain/agent.ts";
import type { NewEvent } from "../../../../domain/event.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import { logFile } from "../../../../execution/spool-records.ts";
import { openRegular, readRegular } from "../../../../lib/files/regular-file.ts";

/** Of what the agent wrote where it was told to, and of its output, in bytes. */
const FILE_MAX_BYTES = 1024 * 1024;
const OUTPUT_MAX_BYTES = 64 * 1024;

export interface LastMessage {
  /** Null where the agent has said nothing. */
  readonly text: string | null;
  readonly events: readonly NewEvent[];
}

/** @param file where the agent may have written it, in the attempt's directory */
export function lastMessage(file: string, adapter: AgentAdapter): LastMessage {
  const read = ofAttemptFile(file, (own) => readRegular(own, FILE_MAX_BYTES), "absent" as const);
  if (typeof read !== "string" && read.text !== "") return { text: read.text, events: [] };
  const why = read === "too_large" ? `larger than ${FILE_MAX_BYTES} bytes` : read === "not_a_file" ? "no regular file" : null;
  const events = why === null ? [] : [refused(path.basename(file), why)];
  if (adapter === "codex") return { text: null, events };
  const output = endOfOutput(path.join(path.dirname(file), logFile("stdout")));
  const text = adapter === "generic" ? afterReports(output) : output;
  return { text: text.trim() === "" ? null : text, events };
}

const refused = (name: string, why: string): NewEvent => ({
  event_type: "artifact.refused",
  level: "warning",
  message: `The agent's last message is not kept: ${name} is ${why}.`,
  payload: { name, reason: why },
});

/** The last bytes of the log, from the beginning of a line where some are left out before. */
function endOfOutput(file: string): string {
  const opened = ofAttemptFile(file, openRegular, "absent" as const);
  if (typeof opened === "string") return "";
  const { fd, size } = opened;
  try {
    const bytes = Buffer.alloc(Math.min(size, OUTPUT_MAX_BYTES));
    const count = fs.readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    const end = bytes.subarray(0, count);
    const line = size > bytes.length ? end.indexOf(10) + 1 : 0;
    return end.subarray(line).toString("utf8");
  } finally {
    fs.closeSync(fd);
  }
}

/** Lines after the last that is a report. */
function afterReports(output: string): string {
  const lines = output.split("\n");
  return lines.slice(lines.findLastIndex((line) => line.startsWith("{")) + 1).join("\n");
}
