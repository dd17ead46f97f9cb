import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { isDeviceName } from "../../domain/id.ts";

/**
 * Where a file of a name from elsewhere goes below a directory: never outside of it, neither by the name nor through a link that lies on
 * the way.
 *
 * @param name path with `/` between its parts
 * @throws RelayError path_escapes_root; local_file_unusable where something else is in the way
 */
export function placeBelow(directory: string, name: string, platform: NodeJS.Platform): string {
  const parts = name.split("/");
  if (parts.some((part) => !isPlain(part, platform)))
    throw new RelayError("path_escapes_root", `${JSON.stringify(name)} is no name for a file here`);
  let at = directory;
  for (const part of parts.slice(0, -1)) {
    at = path.join(at, part);
    const there = fs.lstatSync(at, { throwIfNoEntry: false });
    if (there === undefined || there.isDirectory()) continue;
    if (there.isSymbolicLink())
      throw new RelayError("path_escapes_root", `${at} is a link, and ${JSON.stringify(name)} is to lie in a directory`);
    throw new RelayError("local_file_unusable", `${at} is in the way of ${JSON.stringify(name)}`);
  }
  return path.join(directory, ...parts);
}

/** Whether a part of a path means nothing but itself; on Windows, which takes more characters for separators and names for devices, too. */
const isPlain = (part: string, platform: NodeJS.Platform): boolean =>
  part !== "" &&
  part !== "." &&
  part !== ".." &&
  !part.includes("\0") &&
  (platform !== "win32" || (!/[\\:*?"<>|]|[. ]$/.test(part) && !isDeviceName(part.split(".")[0]!.toLowerCase())));
