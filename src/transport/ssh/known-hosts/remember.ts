import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory } from "../../../lib/files/atomic-file.ts";
import { lockWithin } from "../../../lib/files/waited-lock.ts";
import { hashedName, knownKeys } from "./file.ts";

const LOCK_WAIT_MS = 5_000;
/** What means nothing but itself in the first field of a line. Any other alias can stand there as a hash. */
const PLAIN_NAME = /^[A-Za-z0-9_.:[\]%-]+$/;

/**
 * Append an accepted key to known_hosts, as one write under a lock of the file, unless somebody else has done so meanwhile. The file and its
 * directory are made where they are missing, private to the user.
 *
 * @throws the system's error when it cannot be written
 */
export async function rememberKey(file: string, name: string, type: string, key: Buffer, hashed: boolean): Promise<void> {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const existed = fs.existsSync(file);
  // Without locks one write with O_APPEND has to do.
  const lock = await lockWithin(file, LOCK_WAIT_MS);
  try {
    if (knownKeys(name, [file]).some((one) => one.marker === "none" && one.key.equals(key))) return;
    const fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT, 0o600);
    try {
      const line = `${hashed || !PLAIN_NAME.test(name) ? hashedName(name) : name} ${type} ${key.toString("base64")}\n`;
      fs.writeSync(fd, endsOpen(fd) ? `\n${line}` : line);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  } finally {
    lock?.release();
  }
  if (!existed) fsyncDirectory(path.dirname(file));
}

/** Whether the last line has no end yet. */
function endsOpen(fd: number): boolean {
  const { size } = fs.fstatSync(fd);
  const last = Buffer.alloc(1);
  return size > 0 && fs.readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
}
