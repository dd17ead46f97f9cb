import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Sha256, text } from "../../domain/primitives.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { readSmallFile } from "../../lib/files/regular-file.ts";

const MAX_BYTES = 64 * 1024;

/** A frpc that was installed, for one kind of machine. */
export const InstalledFrp = v.strictObject({
  /** As frp names it: OS_ARCHITECTURE. */
  platform: text(64),
  /** SHA-256 of the programs. */
  frpc: Sha256,
  frps: v.nullable(Sha256),
  /** What frpc says of itself; null where it cannot run here. */
  version: v.nullable(text(64)),
  /** Where it came from, and the SHA-256 that was looked at. */
  source: text(4_096),
  verified: v.strictObject({ what: v.picklist(["archive", "binary"]), sha256: Sha256, by: v.picklist(["pinned", "given"]) }),
});
export type InstalledFrp = v.InferOutput<typeof InstalledFrp>;

const Index = v.strictObject({ installed: v.pipe(v.array(InstalledFrp), v.maxLength(64)) });
const indexFile = (directory: string): string => path.join(directory, "installed.json");

/** Where a program with a digest lies. */
export const programFile = (directory: string, digest: string, name: "frpc" | "frps"): string => path.join(directory, digest, name);

/** What is installed. @throws RelayError local_file_unusable where the list is damaged */
export function installedFrps(directory: string): readonly InstalledFrp[] {
  const file = indexFile(directory);
  try {
    const found = readSmallFile(file, MAX_BYTES);
    return found === null ? [] : v.parse(Index, JSON.parse(found)).installed;
  } catch (cause) {
    throw new RelayError("local_file_unusable", `${file} is damaged`, { path: file }, `rm ${file}, then clio-relay install-frp`, { cause });
  }
}

export function recordInstalled(directory: string, one: InstalledFrp): void {
  const others = installedFrps(directory).filter(({ platform }) => platform !== one.platform);
  makePrivateDirectory(directory);
  writeFileAtomic(indexFile(directory), `${JSON.stringify({ installed: [...others, one] }, null, 2)}\n`);
}

/** The frpc for a kind of machine. @throws RelayError frp_not_installed */
export function frpcFor(directory: string, platform: string): { readonly file: string; readonly digest: string } {
  const one = installedFrps(directory).find((known) => known.platform === platform);
  const file = one === undefined ? null : programFile(directory, one.frpc, "frpc");
  if (one !== undefined && file !== null && fs.existsSync(file)) return { file, digest: one.frpc };
  const own = platform === ownPlatform();
  throw new RelayError(
    "frp_not_installed",
    `there is no frpc for ${platform} here`,
    { platform },
    own ? "clio-relay install-frp" : `clio-relay install-frp --platform ${platform.replace("_", "-")}`,
  );
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };
const SYSTEMS: Readonly<Record<string, string>> = { linux: "linux", darwin: "darwin", win32: "windows" };

/** The kind of machine that this is, as frp names it. */
export const ownPlatform = (): string => `${SYSTEMS[process.platform] ?? process.platform}_${ARCHITECTURES[process.arch] ?? process.arch}`;
