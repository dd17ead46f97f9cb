import fs from "node:fs";

/** What the password database says of a user (passwd(5)). */
export interface Account {
  readonly name: string;
  readonly home: string;
  readonly shell: string;
}

/** Read one line of passwd(5); null when it is not the user's or not whole. */
export function parsePasswdLine(line: string, uid: number): Account | null {
  const [name, , id, , , home, shell] = line.split(":");
  if (!name || Number(id) !== uid || !home?.startsWith("/")) return null;
  return { name, home, shell: shell?.trim() || "/bin/sh" };
}

const known = new Map<number, Account>();

/**
 * A user's account: by getent(1), which asks directory services too, else from /etc/passwd; a user without an entry (in some
 * containers) has a number for a name. Asked for once: os.userInfo() of Bun knows the environment only.
 */
export function account(uid: number): Account {
  let found = known.get(uid);
  if (found === undefined) {
    found = fromDatabase(uid) ?? { name: String(uid), home: "/", shell: "/bin/sh" };
    known.set(uid, found);
  }
  return found;
}

function fromDatabase(uid: number): Account | null {
  for (const read of [getent, passwdFile]) {
    for (const line of read(uid).split("\n")) {
      const entry = parsePasswdLine(line, uid);
      if (entry !== null) return entry;
    }
  }
  return null;
}

function getent(uid: number): string {
  try {
    const options = { env: { PATH: "/usr/bin:/bin" }, stdin: "ignore", stdout: "pipe", stderr: "ignore", timeout: 10_000 } as const;
    return Bun.spawnSync(["/usr/bin/env", "getent", "passwd", String(uid)], options).stdout.toString();
  } catch {
    return "";
  }
}

function passwdFile(): string {
  try {
    return fs.readFileSync("/etc/passwd", "utf8");
  } catch {
    return "";
  }
}
