import { RelayError } from "../domain/errors.ts";
import type { CliIo } from "./io.ts";

/*
 * Arguments and variables are bytes. The runtime decodes them as UTF-8 and puts U+FFFD where they are none, which would name another
 * file, or run another command, than the one that was typed. They are refused; a U+FFFD that was really typed is not.
 */

const MARK = "\u{FFFD}";
/** Variables that say where an installation lies and how it is set up. */
const OURS = /^(?:CLIO_RELAY_\w+|XDG_\w+|HOME)$/;

/** Refuse arguments that are not text. @throws RelayError usage, naming the first one with its bytes */
export function refuseUndecodableArguments(argv: readonly string[], io: Pick<CliIo, "raw">): void {
  if (!argv.some((word) => word.includes(MARK))) return;
  const words = split(io.raw.commandLine()).slice(-argv.length);
  const at = words.findIndex((word) => !isUtf8(word));
  if (at < 0) return;
  throw new RelayError(
    "usage",
    `argument ${at + 1}, ${shown(words[at]!)}, is not UTF-8 text`,
    {},
    "records hold text only; in a script (job submit --script FILE) a pattern stands for such a name",
  );
}

/** Refuse variables of ours that are not text. @throws RelayError configuration_error, naming the first one with its bytes */
export function refuseUndecodableVariables({ raw, env }: Pick<CliIo, "raw" | "env">): void {
  const marked = Object.entries(env.variables).filter(([name, value]) => OURS.test(name) && value?.includes(MARK));
  if (marked.length === 0) return;
  for (const bytes of split(raw.environment())) {
    const text = new TextDecoder().decode(bytes);
    const name = text.slice(0, text.indexOf("="));
    if (!marked.some(([one]) => one === name) || isUtf8(bytes)) continue;
    throw new RelayError("configuration_error", `${name} is ${shown(bytes.subarray(name.length + 1))}, which is not UTF-8 text`, {
      variable: name,
    });
  }
}

/** Whether the name of a directory was lost in decoding. */
export const isUndecodable = (directory: string, exists: (path: string) => boolean): boolean =>
  directory.includes(MARK) && !exists(directory);

/** Words that are ended by a NUL each, as in /proc/PID/cmdline and environ (proc_pid_cmdline(5)). */
function split(bytes: Uint8Array | null): Uint8Array[] {
  const words: Uint8Array[] = [];
  for (let from = 0; bytes !== null && from < bytes.length; ) {
    const found = bytes.indexOf(0, from);
    const end = found < 0 ? bytes.length : found;
    words.push(bytes.subarray(from, end));
    from = end + 1;
  }
  return words;
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

const isPlain = (byte: number): boolean => byte >= 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c;

/** Bytes as bash, ksh and zsh take them ($'…'), as many as a line shows. */
const shown = (bytes: Uint8Array): string => {
  const text = [...bytes.subarray(0, 100)].map((byte) =>
    isPlain(byte) ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`,
  );
  return `$'${text.join("")}'${bytes.length > 100 ? "…" : ""}`;
};
