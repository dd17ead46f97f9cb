import fs from "node:fs";
import path from "node:path";
import type { CommandResult } from "../runner/relay.ts";

/** A root file system with musl 1.2.4 or newer, libstdc++ and a shell: Alpine's, or one that was put together (docs/measured.md). */
const ROOT = process.env["CLIO_RELAY_TEST_MUSL"];

/** Why no executable for musl can be started here, in a few words; null when it can. */
export function noMusl(): string | null {
  if (ROOT === undefined) return "CLIO_RELAY_TEST_MUSL names no root file system with musl";
  if (process.getuid?.() !== 0) return "needs root";
  const loader = ["x86_64", "aarch64"].some((machine) => fs.existsSync(path.join(ROOT, `lib/ld-musl-${machine}.so.1`)));
  return loader ? null : `${ROOT} has no musl`;
}

/** Enter the root file system with what a program needs of the kernel, the executable and a directory for temporary files; all processes end with the script. */
const ENTER = `
root=$1
for place in proc dev tmp; do mkdir -p "$root/$place"; done
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
: >"$root/tmp/clio-relay"
mount --bind "$2" "$root/tmp/clio-relay"
exec chroot "$root" /bin/sh -c "$3"
`;

/** Run a shell script in the root file system. @param script gets the executable's path there */
export async function withMusl(executable: string, script: (executable: string) => string): Promise<Omit<CommandResult, "json">> {
  const namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"];
  const child = Bun.spawn([...namespaces, "sh", "-ec", ENTER, "musl", ROOT!, executable, script("/tmp/clio-relay")], {
    env: { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", HOME: "/tmp", CLIO_RELAY_MIN_FREE_BYTES: "0" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}
