import os from "node:os";
import path from "node:path";
import { ownKey } from "../own-key.ts";

/** This installation's private key, by which workers know it in sessions of their own; made at first use. @throws RelayError configuration_error */
export const desktopKey = (configDir: string): string => ownKey(path.join(configDir, "desktop-key"), "clio-relay desktop");

/** What this desktop is called in a worker's list of keys: `USER@HOST`, printable, 60 characters at most. */
export function ownName(): string {
  let user = "";
  try {
    const { username } = os.userInfo();
    // What Bun says where no variable has it.
    if (username !== "unknown") user = `${username}@`;
  } catch {
    // A user without a name of their own (a container's).
  }
  return `${user}${os.hostname()}`.replace(/[^\x21-\x7e]/g, "_").slice(0, 60);
}
