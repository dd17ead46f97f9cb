import fs from "node:fs";
import path from "node:path";
import { identify } from "../system/process-identity.ts";

/** Names of what is in the making, in atomic-file.ts and elsewhere: `.NAME.PID.tmp`, `.NAME.PID.UUID.tmp`. */
const IN_THE_MAKING = /^\..+?\.(\d+)\.(?:[0-9a-f-]{36}\.)?tmp$/;

/** Remove files, and directories, in the making whose makers are gone from a directory, where there is one. */
export function removeAbandoned(directory: string): void {
  if (!fs.existsSync(directory)) return;
  for (const name of fs.readdirSync(directory)) {
    const pid = IN_THE_MAKING.exec(name)?.[1];
    if (pid !== undefined && identify(Number(pid)) === null) fs.rmSync(path.join(directory, name), { recursive: true, force: true });
  }
}
