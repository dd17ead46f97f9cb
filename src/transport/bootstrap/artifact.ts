import fs from "node:fs";
import { unreadableFile } from "../../config/named-file.ts";
import { RelayError } from "../../domain/errors.ts";

/** What an executable was made for. `musl` means that it needs that C library, and cannot start with another. */
export interface Platform {
  readonly os: "linux" | "other";
  readonly machine: "x64" | "arm64" | "other";
  readonly libc: "glibc" | "musl" | "other";
  /** For processors without AVX2; null where only its name could tell and does not. */
  readonly baseline: boolean | null;
}

/** An executable that can be sent. */
export interface Artifact {
  /** For people. */
  readonly file: string;
  readonly digest: string;
  readonly size: number;
  readonly platform: Platform;
  /** Its bytes from an offset on. */
  read(offset: number): AsyncIterable<Uint8Array>;
}

const HASH_BYTES = 4 * 1024 * 1024;
const READ_BYTES = 256 * 1024;
const HEADER_BYTES = 64 * 1024;

/**
 * Look at an executable: its SHA-256, and what it was made for by its ELF header (elf(5)).
 *
 * @throws RelayError local_file_missing, local_file_unusable, artifact_unfit where the file is no executable, or not whole
 */
export async function openArtifact(file: string): Promise<Artifact> {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  } catch (error) {
    throw unreadableFile(file, error);
  }
  try {
    const stat = fs.fstatSync(fd);
    if (!stat.isFile() || stat.size < 4) throw new RelayError("artifact_unfit", `${file} is no executable`, { path: file });
    const header = Buffer.alloc(Math.min(HEADER_BYTES, stat.size));
    fs.readSync(fd, header, 0, header.length, 0);
    refuseCut(header, stat.size, file);
    const platform = platformOf(header, file);
    return { file, digest: await digestOf(fd, stat.size), size: stat.size, platform, read: (offset) => readFrom(file, offset) };
  } finally {
    fs.closeSync(fd);
  }
}

/** elf(5): the table of sections is the last of what the linker writes, so a download that broke off has no end of it. @throws RelayError artifact_unfit */
function refuseCut(header: Buffer, size: number, file: string): void {
  if (!isElf64(header)) return;
  const whole = Number(header.readBigUInt64LE(40)) + header.readUInt16LE(58) * header.readUInt16LE(60);
  if (whole <= size) return;
  throw new RelayError(
    "artifact_unfit",
    `${file} is not whole: it has ${size} bytes, and its header tells of ${whole}`,
    { path: file, size_bytes: size, whole_bytes: whole },
    "fetch it again, and compare it with SHA256SUMS of its release",
  );
}

/** In pieces, so that what else the process does goes on. */
async function digestOf(fd: number, size: number): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const buffer = Buffer.alloc(Math.min(HASH_BYTES, size));
  for (let at = 0; at < size; ) {
    const got = fs.readSync(fd, buffer, 0, buffer.length, at);
    if (got === 0) break;
    hash.update(buffer.subarray(0, got));
    at += got;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return hash.digest("hex");
}

async function* readFrom(file: string, offset: number): AsyncGenerator<Uint8Array> {
  const handle = await fs.promises.open(file, "r");
  try {
    for (let at = offset; ; ) {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

const MACHINES: Readonly<Record<number, Platform["machine"]>> = { 62: "x64", 183: "arm64" };
const PT_INTERP = 3;

/** elf(5): of 64 bits, little-endian. */
const isElf64 = (header: Buffer): boolean =>
  header.length >= 64 && header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1;

/** elf(5): e_machine, and the program interpreter, which belongs to a C library. A script has no platform. */
function platformOf(header: Buffer, file: string): Platform {
  const baseline = /-baseline(?:\.|$)/.test(file) ? true : null;
  const other: Platform = { os: "other", machine: "other", libc: "other", baseline };
  if (!isElf64(header)) return other;
  const machine = MACHINES[header.readUInt16LE(18)] ?? "other";
  const table = Number(header.readBigUInt64LE(32));
  const [entryBytes, entries] = [header.readUInt16LE(54), header.readUInt16LE(56)];
  for (let index = 0; index < entries; index++) {
    const at = table + index * entryBytes;
    if (at + 40 > header.length) break;
    if (header.readUInt32LE(at) !== PT_INTERP) continue;
    const [from, length] = [Number(header.readBigUInt64LE(at + 8)), Number(header.readBigUInt64LE(at + 32))];
    const interpreter = header.toString("latin1", from, Math.min(from + length, header.length));
    return { os: "linux", machine, libc: interpreter.includes("ld-musl") ? "musl" : "glibc", baseline };
  }
  return { ...other, os: "linux", machine };
}
