import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import type { Artifact, Platform } from "../../../src/transport/bootstrap/artifact.ts";
import type { HostProbe } from "../../../src/transport/bootstrap/probe.ts";
import { type Remote, remoteOver } from "../../../src/transport/script/remote.ts";
import { type ShellHost, shellHost } from "../script/shells.ts";

export const HERE: Platform = { os: "linux", machine: process.arch === "arm64" ? "arm64" : "x64", libc: "glibc", baseline: null };

/** An executable for tests: a shell program of some size that says its version, and otherwise does what the text says. @param knows newest schema of a queue; null: it does not say */
export function program(
  version: string,
  { filler = 0, text = "", platform = HERE, says = version, knows = null as number | null } = {},
): Artifact & { readonly bytes: Buffer } {
  const schema =
    knows === null ? "" : `if [ "$*" = "version --json" ]; then echo '{"version":"${version}","queue_schema": ${knows}}'; exit 0; fi\n`;
  const script = `#!/bin/sh\nif [ "$1" = --version ]; then echo '${says}'; exit 0; fi\n${schema}${text}\nexit 0\n`;
  const bytes = Buffer.concat([Buffer.from(script), Buffer.alloc(filler, `# ${version} filler filler\n`)]);
  return {
    file: "program",
    digest: sha256Hex(bytes),
    size: bytes.length,
    platform,
    bytes,
    async *read(offset) {
      for (let at = offset; at < bytes.length; at += 64 * 1024) yield bytes.subarray(at, at + 64 * 1024);
    },
  };
}

/** Below a home, everything that an installation has: paths with what they hold. */
export function tree(home: string, below = ".local"): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (directory: string): void => {
    for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
      const file = path.join(directory, entry.name);
      const name = path.relative(home, file);
      if (entry.isSymbolicLink()) found[name] = `-> ${fs.readlinkSync(file)}`;
      else if (entry.isDirectory()) visit(file);
      else found[name] = entry.name === "journal.jsonl" ? "journal" : sha256Hex(fs.readFileSync(file));
    }
  };
  if (fs.existsSync(path.join(home, below))) visit(path.join(home, below));
  return found;
}

export const root = (home: string): string => path.join(home, ".local/share/clio-relay");

export const remoteAt = (home: string, host: Partial<ShellHost> = {}): Remote => remoteOver(shellHost({ home, ...host }));

/** A probe as of a host that fits, with what the test changes. */
export function fitting(change: Partial<HostProbe> = {}): HostProbe {
  return {
    os: "Linux",
    machine: "x64",
    machine_name: "x86_64",
    kernel: "6.1",
    hostname: "login1",
    boot_id: "b",
    user: "u",
    uid: 1000,
    home: "/home/u",
    home_real: "/home/u",
    libc: "glibc",
    libc_version: "2.36",
    avx2: true,
    site: { marker_sha256: null, scheduler_cluster_name: null },
    storage: {
      root: "/home/u/.local/share/clio-relay",
      place: "/home/u",
      file_system: "ext4",
      network: false,
      read_only: false,
      writable: true,
      starts: true,
      free_bytes: 1e12,
      free_inodes: 1e6,
    },
    installation: { current: null, previous: null, versions: [], trial: null, foreign: null, nodes: [] },
    queue: false,
    worker: null,
    systemd: { version: 252, user_manager: "running", linger: true },
    tools: ["sha256sum"],
    ...change,
  };
}
