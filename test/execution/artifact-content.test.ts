import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import type { NewArtifact } from "../../src/domain/artifact.ts";
import { openArtifact } from "../../src/execution/artifact-content.ts";
import { openBeneath } from "../../src/execution/beneath.ts";
import { readPiece } from "../../src/execution/file-hash.ts";
import { eventually } from "../runner/wait.ts";
import { collect, jobDir, openFiles, placesOfAJob, put, read, readUntilFailure, record, workdir } from "./job-places.ts";

placesOfAJob();

describe("reading", () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 13) & 0xff));

  for (const storeMaxBytes of [0, 1_000_000]) {
    const where = storeMaxBytes === 0 ? "in place" : "in the spool";

    test(`${where} gives the whole file, and any part of it`, async () => {
      put("data", content);
      const [artifact] = (await collect(["data"], { storeMaxBytes })).artifacts;
      const before = openFiles();
      expect((await read(artifact!)).equals(content)).toBe(true);
      for (const [start, end] of [
        [0, 1],
        [0, 299_999],
        [65_535, 65_537],
        [100, 100],
        [299_999, 300_000],
        [1, 300_000],
      ] as const) {
        expect((await read(artifact!, { start, end })).equals(content.subarray(start, end))).toBe(true);
      }
      expect(openFiles()).toBeLessThanOrEqual(before);
    });

    test(`${where} finds other bytes of the same length before the last piece is out`, async () => {
      put("data", content);
      const [artifact] = (await collect(["data"], { storeMaxBytes })).artifacts;
      const file = storeMaxBytes === 0 ? `${workdir}/data` : `${jobDir}/artifacts/${artifact!.artifact_id}`;
      const { atime, mtime } = fs.statSync(file);
      const before = openFiles();
      const open = await openArtifact(record(artifact!), jobDir);
      const fd = fs.openSync(file, "r+");
      fs.writeSync(fd, "!", 1_000);
      fs.closeSync(fd);
      fs.utimesSync(file, atime, mtime);
      const { bytes, code } = await readUntilFailure(open);
      expect(code).toBe("artifact_changed");
      expect(bytes).toBeLessThan(300_000);
      expect(openFiles()).toBeLessThanOrEqual(before);
    });

    test(`${where} refuses another length before the first byte`, async () => {
      put("data", content);
      const [artifact] = (await collect(["data"], { storeMaxBytes })).artifacts;
      const file = storeMaxBytes === 0 ? `${workdir}/data` : `${jobDir}/artifacts/${artifact!.artifact_id}`;
      fs.appendFileSync(file, "more");
      await expect(openArtifact(record(artifact!), jobDir)).rejects.toThrow(expect.objectContaining({ code: "artifact_changed" }));
      fs.rmSync(file);
      await expect(openArtifact(record(artifact!), jobDir)).rejects.toThrow(expect.objectContaining({ code: "artifact_unreadable" }));
    });

    test(`${where} notices a change while a part is read`, async () => {
      put("data", content);
      const [artifact] = (await collect(["data"], { storeMaxBytes })).artifacts;
      const file = storeMaxBytes === 0 ? `${workdir}/data` : `${jobDir}/artifacts/${artifact!.artifact_id}`;
      const open = await openArtifact(record(artifact!), jobDir);
      fs.truncateSync(file, 250_000);
      const { bytes, code } = await readUntilFailure(open, { start: 200_000, end: 299_000 });
      expect(code).toBe("artifact_changed");
      expect(bytes).toBeLessThan(99_000);
    });
  }

  test("in place refuses a file that was written again, though it has the same length", async () => {
    put("data", content);
    const [artifact] = (await collect(["data"], { storeMaxBytes: 0 })).artifacts;
    fs.utimesSync(`${workdir}/data`, 1, 1);
    await expect(openArtifact(record(artifact!), jobDir)).rejects.toThrow(expect.objectContaining({ code: "artifact_changed" }));
  });

  for (const storeMaxBytes of [0, 1_000_000]) {
    const where = storeMaxBytes === 0 ? "in place" : "in the spool";
    const prepared = async (): Promise<{ artifact: NewArtifact; file: string }> => {
      put("data", content);
      const [artifact] = (await collect(["data"], { storeMaxBytes })).artifacts;
      return { artifact: artifact!, file: storeMaxBytes === 0 ? `${workdir}/data` : `${jobDir}/artifacts/${artifact!.artifact_id}` };
    };
    const setBack = (file: string, change: () => void): void => {
      const { mtimeNs } = fs.statSync(file, { bigint: true });
      change();
      // To the nanosecond, as `touch -d` and `cp -p` do it.
      const seconds = `${mtimeNs / 1_000_000_000n}.${String(mtimeNs % 1_000_000_000n).padStart(9, "0")}`;
      expect(Bun.spawnSync(["touch", "-m", "-d", `@${seconds}`, file]).exitCode).toBe(0);
      expect(fs.statSync(file, { bigint: true }).mtimeNs).toBe(mtimeNs);
    };

    test(`${where} refuses a piece of a file with another content of the same length and time`, async () => {
      const { artifact, file } = await prepared();
      setBack(file, () => {
        const fd = fs.openSync(file, "r+");
        fs.writeSync(fd, "other", 200_000);
        fs.closeSync(fd);
      });
      await expect(read(artifact, { start: 0, end: 10 })).rejects.toThrow(expect.objectContaining({ code: "artifact_changed" }));
    });

    test(`${where} refuses another file of the same length and time`, async () => {
      const { artifact, file } = await prepared();
      setBack(file, () => {
        fs.writeFileSync(`${file}.new`, Buffer.alloc(300_000));
        fs.renameSync(`${file}.new`, file);
      });
      await expect(read(artifact, { start: 0, end: 10 })).rejects.toThrow(expect.objectContaining({ code: "artifact_changed" }));
    });

    test(`${where} takes a file whose permissions changed, or that has another number, with the same content`, async () => {
      const { artifact, file } = await prepared();
      fs.chmodSync(file, 0o640);
      expect((await read(artifact, { start: 5, end: 9 })).equals(content.subarray(5, 9))).toBe(true);
      setBack(file, () => {
        fs.writeFileSync(`${file}.new`, content);
        fs.renameSync(`${file}.new`, file);
      });
      expect((await read(artifact, { start: 5, end: 9 })).equals(content.subarray(5, 9))).toBe(true);
      // What was verified counts for that version only.
      setBack(file, () => fs.writeFileSync(file, Buffer.alloc(300_000)));
      await expect(read(artifact, { start: 5, end: 9 })).rejects.toThrow(expect.objectContaining({ code: "artifact_changed" }));
    });
  }

  test("from a spool that was restored, with other times, goes by the digest", async () => {
    put("data", content);
    const [artifact] = (await collect(["data"])).artifacts;
    const file = `${jobDir}/artifacts/${artifact!.artifact_id}`;
    fs.utimesSync(file, 1, 1);
    expect((await read(artifact!, { start: 5, end: 9 })).equals(content.subarray(5, 9))).toBe(true);
    fs.writeFileSync(file, Buffer.alloc(300_000));
    await expect(openArtifact(record(artifact!), jobDir)).rejects.toThrow(expect.objectContaining({ code: "artifact_changed" }));
  });

  test("in place refuses a link that has taken the place of a directory", async () => {
    put("sub/data", content);
    const [artifact] = (await collect(["sub/data"], { storeMaxBytes: 0 })).artifacts;
    fs.renameSync(`${workdir}/sub`, `${workdir}/moved`);
    fs.symlinkSync("moved", `${workdir}/sub`);
    await expect(openArtifact(record(artifact!), jobDir)).rejects.toThrow(expect.objectContaining({ code: "path_escapes_root" }));
  });

  test("in place refuses a working directory that has become a link", async () => {
    put("data", content);
    const [artifact] = (await collect(["data"], { storeMaxBytes: 0 })).artifacts;
    fs.renameSync(workdir, `${workdir}-moved`);
    fs.symlinkSync(`${workdir}-moved`, workdir);
    await expect(openArtifact(record(artifact!), jobDir)).rejects.toThrow(expect.objectContaining({ code: "artifact_unreadable" }));
  });

  test("never leaves the spool or the recorded root, whatever a record says", async () => {
    put("data", content);
    const [artifact] = (await collect(["data"], { storeMaxBytes: 0 })).artifacts;
    const cases: [Partial<NewArtifact>, string][] = [
      [{ uri: "spool:../job_b/attempt-1/stdout.log" }, "path_escapes_root"],
      [{ uri: "spool:artifacts/../../x" }, "path_escapes_root"],
      [{ uri: "spool:/etc/passwd" }, "path_escapes_root"],
      [{ uri: "spool:" }, "path_escapes_root"],
      [{ uri: "file:///etc/passwd" }, "path_escapes_root"],
      [{ uri: `file://${workdir}/../secret` }, "path_escapes_root"],
      [{ uri: `file://${workdir}/data`, metadata: {} }, "path_escapes_root"],
      [{ uri: "file://host/share" }, "artifact_unreadable"],
      [{ uri: "https://example.org/x" }, "artifact_unreadable"],
    ];
    for (const [change, code] of cases) {
      await expect(openArtifact(record({ ...artifact!, ...change }), jobDir), JSON.stringify(change)).rejects.toThrow(
        expect.objectContaining({ code }),
      );
    }
  });

  test("that is broken off closes the file", async () => {
    put("data", content);
    const [artifact] = (await collect(["data"])).artifacts;
    const before = openFiles();
    const unread = await openArtifact(record(artifact!), jobDir);
    await unread.close();
    const open = await openArtifact(record(artifact!), jobDir);
    const reader = open.stream().getReader();
    expect((await reader.read()).value!.length).toBeGreaterThan(0);
    await reader.cancel();
    await eventually(() => openFiles() <= before, { what: "the closed file" });
    expect(openFiles()).toBeLessThanOrEqual(before);
  });
});

describe("openBeneath", () => {
  test("follows no link on its way down, and opens nothing but regular files", async () => {
    put("a/b/file", "abc");
    fs.symlinkSync("b", `${workdir}/a/link`);
    fs.symlinkSync("file", `${workdir}/a/b/link`);
    expect(Bun.spawnSync(["mkfifo", `${workdir}/a/pipe`]).exitCode).toBe(0);
    const before = openFiles();
    const { handle, stat } = await openBeneath(workdir, "a/b/file");
    expect(stat.size).toBe(3n);
    await handle.close();
    for (const [relative, code] of [
      ["a/link/file", "path_escapes_root"],
      ["a/b/link", "path_escapes_root"],
      ["a/../a/b/file", "path_escapes_root"],
      ["/a/b/file", "path_escapes_root"],
      ["a//b/file", "path_escapes_root"],
      ["", "path_escapes_root"],
      ["a/./b/file", "path_escapes_root"],
      ["a/b", "artifact_unreadable"],
      ["a/pipe", "artifact_unreadable"],
      ["a/none", "artifact_unreadable"],
      ["a/b/file/x", "artifact_unreadable"],
    ] as const) {
      await expect(openBeneath(workdir, relative), relative).rejects.toThrow(expect.objectContaining({ code }));
    }
    expect(openFiles()).toBeLessThanOrEqual(before);
  });
});

test("what the system cannot read is unreadable, and its code is said", async () => {
  // Nothing is mapped at its beginning (proc_pid_mem(5)).
  const handle = await fs.promises.open("/proc/self/mem");
  try {
    await expect(readPiece(handle, Buffer.alloc(16), 0)).rejects.toMatchObject({
      code: "artifact_unreadable",
      data: { system_code: "EIO" },
    });
  } finally {
    await handle.close();
  }
});
