import fs from "node:fs";
import path from "node:path";
import { isErrno } from "./atomic-file.ts";

/**
 * Whether a name is there; a symbolic link counts, wherever it leads.
 *
 * @throws the system's error when that cannot be seen: it is no sign of absence, which fs.existsSync makes of it
 */
export function isThere(file: string): boolean {
  try {
    fs.lstatSync(file);
    return true;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/** f_type of statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, overlay. */
const LOCAL_TYPES: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630]);

/** Whether something is on a file system that no other machine serves; false where that cannot be told without a look at the table of mounts. */
export function isSurelyLocal(target: string): boolean {
  try {
    return process.platform === "linux" && LOCAL_TYPES.has(fs.statfsSync(target).type);
  } catch {
    return false;
  }
}

/**
 * Kind of the file system that holds a path (`ext4`, `nfs4`, `tmpfs`, …), as /proc/self/mountinfo names it
 * (proc_pid_mountinfo(5)); `unknown` where that cannot be told. The path need not exist.
 */
export function fileSystemKind(target: string): string {
  let table: string;
  try {
    table = fs.readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "unknown";
  }
  return kindIn(table, existingPart(path.resolve(target)));
}

/** The same from the text of a mountinfo table, for an absolute path without symbolic links. */
export function kindIn(table: string, target: string): string {
  let kind = "unknown";
  let longest = -1;
  for (const line of table.split("\n")) {
    const [head, tail] = line.split(" - ");
    const point = unescapeOctal(head?.split(" ")[4] ?? "");
    // A later mount on the same point hides the earlier one.
    if (tail === undefined || point.length < longest || !covers(point, target)) continue;
    longest = point.length;
    kind = tail.split(" ")[0] ?? "unknown";
  }
  return kind;
}

const covers = (point: string, target: string): boolean =>
  point === "/" || target === point || (point !== "" && target.startsWith(`${point}/`));

const unescapeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

function existingPart(target: string): string {
  try {
    return fs.realpathSync(target);
  } catch {
    const parent = path.dirname(target);
    return parent === target ? target : existingPart(parent);
  }
}
