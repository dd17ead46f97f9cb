import fs from "node:fs";
import path from "node:path";
import type { CommandResult } from "../runner/relay.ts";

const LIBRARIES = "/usr/aarch64-linux-gnu";

/** Magic and mask of ELF executables for arm64: 64 bits, little-endian, ET_EXEC or ET_DYN, EM_AARCH64 (elf(5)). */
const MAGIC = String.raw`\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`;
const MASK = String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`;

const ENTER = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Makes this namespace's kernel start arm64 executables under an emulator, and nobody else's: Linux 6.7 keeps that per user namespace. */
const register = (interpreter: string): string => `
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || exit 97
printf '%s' ':relay-arm64:M::${MAGIC}:${MASK}:${interpreter}:' >/proc/sys/fs/binfmt_misc/register || exit 97
`;

/** Why no arm64 executable can be started here, in a few words; null when it can. */
export function noArm64(): string | null {
  const missing = ["lib/libc.so.6", "lib/libstdc++.so.6"].find((file) => !fs.existsSync(path.join(LIBRARIES, file)));
  if (missing !== undefined) return `${LIBRARIES}/${missing} is missing`;
  if (Bun.which("qemu-aarch64-static") === null) return "qemu-aarch64-static is not installed";
  const entered = Bun.spawnSync([...ENTER, "sh", "-c", register("/bin/true")], { stderr: "ignore" });
  return entered.exitCode === 0 ? null : "this kernel keeps no binfmt_misc per user namespace (Linux 6.7)";
}

/**
 * Run a shell script in namespaces of its own, in which executables for arm64 start like any other, those that such an executable starts included.
 * All processes end with the script.
 *
 * @param directory the script's working directory; a file is put there
 */
export async function withArm64(
  script: string,
  directory: string,
  env: Readonly<Record<string, string>>,
): Promise<Omit<CommandResult, "json">> {
  const emulator = path.join(directory, "emulator");
  fs.writeFileSync(emulator, `#!/bin/sh\nexec qemu-aarch64-static -L ${LIBRARIES} "$@"\n`, { mode: 0o755 });
  const child = Bun.spawn([...ENTER, "sh", "-c", `${register(emulator)}${script}`], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}
