import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { hashFile } from "../../src/execution/file-hash.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();
const CHUNK = 256 * 1024;
const DATA = Buffer.from(Array.from({ length: 3 * CHUNK + 7 }, (_, at) => (at * 31 + (at >> 8)) & 0xff));
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function opened(bytes: Uint8Array): Promise<fs.promises.FileHandle> {
  const file = path.join(directory(), "file");
  fs.writeFileSync(file, bytes);
  return fs.promises.open(file);
}

describe("a file is hashed", () => {
  test.each([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, DATA.length])(
    "%d bytes, each of which is handed on once and in order",
    async (size) => {
      const bytes = DATA.subarray(0, size);
      await using handle = await opened(bytes);
      const seen: Buffer[] = [];
      const sink = async (piece: Uint8Array): Promise<void> => {
        await Bun.sleep(1);
        seen.push(Buffer.from(piece));
      };
      expect(await hashFile(handle, { limit: size + 1, sink })).toEqual({ size, sha256: sha256(bytes) });
      expect(Buffer.concat(seen).equals(bytes)).toBe(true);
      expect(await hashFile(handle, { limit: size })).toEqual({ size, sha256: sha256(bytes) });
    },
  );

  test("up to the limit, wherever that lies", async () => {
    await using handle = await opened(DATA);
    for (const limit of [0, 5, CHUNK, CHUNK + 5])
      expect(await hashFile(handle, { limit })).toEqual({ size: limit, sha256: sha256(DATA.subarray(0, limit)) });
  });
});

describe("the reading ends", () => {
  test("once it is no longer wanted", async () => {
    await using handle = await opened(DATA);
    const unwanted = new AbortController();
    let pieces = 0;
    const sink = async (): Promise<void> => {
      pieces += 1;
      unwanted.abort(new Error("enough"));
    };
    await expect(hashFile(handle, { limit: DATA.length, sink, signal: unwanted.signal })).rejects.toThrow("enough");
    expect(pieces).toBe(1);
    await expect(hashFile(handle, { limit: DATA.length, signal: unwanted.signal })).rejects.toThrow("enough");
  });

  test("once what takes its pieces has failed", async () => {
    await using handle = await opened(DATA);
    await expect(hashFile(handle, { limit: DATA.length, sink: () => Promise.reject(new Error("full")) })).rejects.toThrow("full");
  });

  test("where the system refuses, which is said", async () => {
    await using handle = await fs.promises.open(directory());
    await expect(hashFile(handle, { limit: 10 })).rejects.toMatchObject({
      code: "artifact_unreadable",
      data: { offset: 0, system_code: "EISDIR" },
    });
  });
});
