import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { RelayError } from "../../domain/errors.ts";

/** Programs of frp have some 20 MB; an archive of a release two of them. */
const MAX_PROGRAM = 128 * 1024 * 1024;
const MAX_ARCHIVE = 256 * 1024 * 1024;
const UNZIP_MS = 120_000;

/** What is in a file: an archive of a release, or a program. */
export type Packed = "tar.gz" | "zip" | "program" | "other";

export function kindOf(bytes: Uint8Array): Packed {
  const [a, b, c, d] = bytes;
  if (a === 0x1f && b === 0x8b) return "tar.gz";
  if (a === 0x50 && b === 0x4b) return "zip";
  // ELF, PE, and Mach-O of 64 bits.
  if ((a === 0x7f && b === 0x45 && c === 0x4c && d === 0x46) || (a === 0x4d && b === 0x5a) || (a === 0xcf && b === 0xfa)) return "program";
  return "other";
}

export interface Programs {
  readonly frpc: Uint8Array;
  /** Null where only frpc is there. */
  readonly frps: Uint8Array | null;
}

/**
 * The programs in an archive of a release. Whatever else is in it, and wherever its names lead, is not looked at.
 *
 * @param scratch a private directory on this machine, for what unpacks zip archives here: the system's tar
 * @throws RelayError artifact_unfit where there is no frpc in it, or more than a release has; platform_unsupported
 */
export async function unpack(bytes: Uint8Array, kind: "tar.gz" | "zip", scratch: string): Promise<Programs> {
  const found = kind === "zip" ? unzip(bytes, scratch) : await untar(bytes);
  const { frpc, frps = null } = found;
  if (frpc === undefined) throw new RelayError("artifact_unfit", "there is no frpc in that archive");
  return { frpc, frps };
}

type Found = { frpc?: Uint8Array; frps?: Uint8Array };
const NAME = /(?:^|\/)(frp[cs])(?:\.exe)?$/;

async function untar(bytes: Uint8Array): Promise<Found> {
  let files: Map<string, File>;
  try {
    files = await new Bun.Archive(zlib.gunzipSync(bytes, { maxOutputLength: MAX_ARCHIVE })).files();
  } catch (cause) {
    throw new RelayError("artifact_unfit", "that is no archive of a release of frp: it cannot be unpacked", {}, undefined, { cause });
  }
  const found: Found = {};
  for (const [name, file] of files) {
    const program = NAME.exec(name)?.[1];
    if (program === "frpc" || program === "frps") found[program] ??= await boundedProgram(file);
  }
  return found;
}

async function boundedProgram(file: File): Promise<Uint8Array> {
  if (file.size > MAX_PROGRAM) throw new RelayError("artifact_unfit", `a program in that archive has ${file.size} bytes`);
  return new Uint8Array(await file.arrayBuffer());
}

/** The names of the programs among those of an archive, one a line; a tar would take one that begins with a hyphen for an option. */
export function programsIn(listing: string): { frpc?: string; frps?: string } {
  const names: { frpc?: string; frps?: string } = {};
  for (const name of listing.split(/\r?\n/)) {
    const program = name.startsWith("-") ? undefined : NAME.exec(name)?.[1];
    if (program === "frpc" || program === "frps") names[program] ??= name;
  }
  return names;
}

/** Windows and macOS have a tar that reads zip archives; releases for other systems are none. */
function unzip(bytes: Uint8Array, scratch: string): Found {
  const archive = path.join(scratch, "release.zip");
  fs.writeFileSync(archive, bytes, { mode: 0o600 });
  const tar = (...args: string[]): Buffer => {
    const { status, stdout, error } = spawnSync("tar", args, {
      maxBuffer: MAX_PROGRAM,
      timeout: UNZIP_MS,
      stdio: ["ignore", "pipe", "ignore"],
      env: {},
    });
    if (status === 0) return stdout;
    throw new RelayError(
      "platform_unsupported",
      "the tar of this system cannot unpack that zip archive",
      {},
      "unpack it by other means, then clio-relay install-frp --from FILE --sha256 HEX with frpc itself",
      { cause: error },
    );
  };
  const found: Found = {};
  const { frpc, frps } = programsIn(tar("-tf", archive).toString("utf8"));
  if (frpc !== undefined) found.frpc = tar("-xOf", archive, frpc);
  if (frps !== undefined) found.frps = tar("-xOf", archive, frps);
  return found;
}
