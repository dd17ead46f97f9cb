import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { type ZipEntry, zip } from "../../../src/lib/files/zip.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directory = temporaryDirectories();
const MODIFIED = new Date("2026-03-04T05:06:08.000Z");

async function* inPieces(bytes: Uint8Array, piece: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
}

const entry = (name: string, bytes: Uint8Array, more: Partial<ZipEntry> = {}): ZipEntry => ({
  name,
  size: bytes.length,
  modified: MODIFIED,
  bytes: inPieces(bytes, 7_777),
  ...more,
});

/** What Python's zipfile reads of an archive: it checks every checksum, and takes ZIP64. */
const READ = `
import hashlib, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    print(json.dumps([[i.filename, i.file_size, list(i.date_time), i.create_version, i.extract_version, i.external_attr >> 16, i.flag_bits,
        hashlib.sha256(archive.read(i)).hexdigest()] for i in archive.infolist()]))
`;

async function written(entries: readonly ZipEntry[], zip64From?: number): Promise<string> {
  const file = path.join(directory(), "archive.zip");
  const fd = fs.openSync(file, "w");
  for await (const piece of zip(entries, zip64From)) fs.writeSync(fd, piece);
  fs.closeSync(fd);
  return file;
}

function read(file: string): unknown {
  const python = spawnSync("python3", ["-c", READ, file], { encoding: "utf8" });
  expect([python.status, python.stderr]).toEqual([0, ""]);
  return JSON.parse(python.stdout);
}

const sha256 = (bytes: Uint8Array): string => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
const TEXT = new TextEncoder().encode("a line, again and again\n".repeat(10_000));
const NOISE = crypto.getRandomValues(new Uint8Array(60_000));

describeWith("python3", "an archive", () => {
  test.each([
    ["of 32 bits", undefined, 20],
    ["of 64 bits", 0, 45],
  ])("%s is one to other programs, with every name and byte", async (_name, zip64From, version) => {
    const files: [string, Uint8Array][] = [
      ["plain.txt", TEXT],
      ["a/b/déjà ☃.bin", NOISE],
      ["empty", new Uint8Array()],
    ];
    const file = await written(
      files.map(([name, bytes]) => entry(name, bytes)),
      zip64From,
    );
    expect(read(file)).toEqual(
      files.map(([name, bytes]) => [name, bytes.length, [2026, 3, 4, 5, 6, 8], 45, version, 0o100644, 0x808, sha256(bytes)]),
    );
    expect(fs.statSync(file).size).toBeLessThan(80_000);
  });

  test("may have no files, and more than 65,535", async () => {
    expect(read(await written([]))).toEqual([]);
    const none = new Uint8Array();
    const many = Array.from({ length: 66_000 }, (_, at) => entry(String(at), none));
    // Without a look into each, which would take a minute.
    const file = await written(many);
    const python = spawnSync("python3", ["-c", "import sys, zipfile; print(len(zipfile.ZipFile(sys.argv[1]).infolist()))", file], {
      encoding: "utf8",
    });
    expect(python.stdout).toBe("66000\n");
  });
});

describe("an archive that cannot be made", () => {
  const drain = async (entries: readonly ZipEntry[]): Promise<number> => {
    let bytes = 0;
    for await (const piece of zip(entries)) bytes += piece.length;
    return bytes;
  };

  test.each([
    ["shorter", NOISE.length + 1],
    ["longer", NOISE.length - 1],
  ])("a file that is %s than was said", async (_name, size) => {
    await expect(drain([entry("x", NOISE, { size })])).rejects.toThrow(RangeError);
  });

  test("a file that breaks off", async () => {
    const bytes = (async function* () {
      yield NOISE;
      throw new Error("the disk is gone");
    })();
    await expect(drain([entry("x", NOISE, { size: 2 * NOISE.length, bytes })])).rejects.toThrow("the disk is gone");
  });
});

test("a file is read as fast as the archive is taken, and no faster", async () => {
  let given = 0;
  const bytes = (async function* () {
    for (; given < 2_000; given++) yield crypto.getRandomValues(new Uint8Array(32_768));
  })();
  const pieces = zip([entry("x", NOISE, { size: 2_000 * 32_768, bytes })]);
  for (let i = 0; i < 20; i++) await pieces.next();
  expect(given).toBeLessThan(500);
  await pieces.return(undefined);
});
