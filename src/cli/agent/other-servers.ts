import { readRegular } from "../../lib/regular-file.ts";

const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Whether a file that is to hold the configuration of one MCP server has anything besides.
 *
 * @param name the server's
 * @param isToml else it is JSON
 */
export function hasOthers(file: string, name: string, isToml: boolean): boolean {
  const read = readRegular(file, MAX_BYTES);
  if (read === "absent") return false;
  // What cannot be looked into may be anything.
  if (typeof read === "string") return true;
  if (read.text.trim() === "") return false;
  try {
    const lists = Object.values(tableOf(isToml ? Bun.TOML.parse(read.text) : JSON.parse(read.text)));
    return lists.length > 1 || lists.some((list) => Object.keys(tableOf(list)).some((one) => one !== name));
  } catch {
    return true;
  }
}

/** @throws TypeError for what is no table */
function tableOf(value: unknown): object {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  throw new TypeError("no table");
}
