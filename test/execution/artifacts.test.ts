import { beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { Artifact, type NewArtifact } from "../../src/domain/artifact.ts";
import { type OpenArtifact, openArtifact } from "../../src/execution/artifact-content.ts";
import { type CollectOptions, collectOutputs } from "../../src/execution/artifacts.ts";
import { openBeneath } from "../../src/execution/beneath.ts";
import { identifyWorkdir } from "../../src/execution/workdir.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const temporary = temporaryDirectories();
let workdir = "";
let jobDir = "";

beforeEach(() => {
  const base = temporary();
  workdir = path.join(base, "work");
  jobDir = path.join(base, "spool/job_a");
  fs.mkdirSync(workdir);
  fs.mkdirSync(jobDir, { recursive: true });
});

const collect = (patterns: string[], more: Partial<CollectOptions> = {}) =>
  collectOutputs({
    workdir,
    startedIn: null,
    patterns,
    jobDir,
    storeMaxBytes: 1_000_000,
    minFreeBytes: 0,
    maxFiles: 100,
    attempt: 2,
    ...more,
  });

const record = (artifact: NewArtifact): Artifact =>
  v.parse(Artifact, { ...artifact, job_id: "job_a", sequence: 1, created_at: "2026-01-02T03:04:05.678Z" });

const sha256 = (data: string | Uint8Array): string => new Bun.CryptoHasher("sha256").update(data).digest("hex");
const put = (name: string, data: string | Uint8Array): void => {
  fs.mkdirSync(path.dirname(path.join(workdir, name)), { recursive: true });
  fs.writeFileSync(path.join(workdir, name), data);
};
const stored = (): string[] => (fs.existsSync(`${jobDir}/artifacts`) ? fs.readdirSync(`${jobDir}/artifacts`) : []);

async function read(artifact: NewArtifact, range?: { start: number; end: number }): Promise<Buffer> {
  const open = await openArtifact(record(artifact), jobDir);
  return Buffer.from(await new Response(open.stream(range)).arrayBuffer());
}

/** What a stream gives before it fails, and how it fails. */
async function readUntilFailure(open: OpenArtifact, range?: { start: number; end: number }) {
  let bytes = 0;
  try {
    for await (const piece of open.stream(range)) bytes += piece.length;
  } catch (error) {
    return { bytes, code: (error as { code?: string }).code };
  }
  return { bytes, code: null };
}

const openFiles = (): number => fs.readdirSync("/proc/self/fd").length;

describe("collecting", () => {
  test("copies small files into the spool, with size and digest", async () => {
    put(
      "out/result.bin",
      Uint8Array.from({ length: 70_000 }, (_, i) => i & 0xff),
    );
    put("out/empty", "");
    const before = openFiles();
    const { artifacts, issues } = await collect(["out/*"]);
    expect(issues).toEqual([]);
    expect(artifacts.map(({ name, size_bytes }) => [name, size_bytes])).toEqual([
      ["out/empty", 0],
      ["out/result.bin", 70_000],
    ]);
    for (const artifact of artifacts) {
      const original = fs.readFileSync(path.join(workdir, artifact.name));
      expect(record(artifact)).toMatchObject({ kind: "execution_output", metadata: { attempt: 2, stored: true } });
      expect(artifact.uri).toBe(`spool:artifacts/${artifact.artifact_id}`);
      expect(artifact.sha256).toBe(sha256(original));
      expect(fs.readFileSync(`${jobDir}/artifacts/${artifact.artifact_id}`).equals(original)).toBe(true);
      expect(fs.statSync(`${jobDir}/artifacts/${artifact.artifact_id}`).mode & 0o777).toBe(0o600);
    }
    expect(stored().length).toBe(2);
    expect(openFiles()).toBeLessThanOrEqual(before);
  });

  test("references large files in place", async () => {
    put("big", "x".repeat(1_001));
    put("fits", "x".repeat(1_000));
    const { artifacts } = await collect(["*"], { storeMaxBytes: 1_000 });
    const [big, fits] = artifacts;
    expect(big).toMatchObject({
      name: "big",
      sha256: sha256("x".repeat(1_001)),
      metadata: { stored: false, root: fs.realpathSync(workdir) },
    });
    expect(big!.uri).toBe(`file://${fs.realpathSync(workdir)}/big`);
    expect(fits!.uri).toStartWith("spool:");
    expect(stored()).toEqual([fits!.artifact_id]);
    expect((await read(big!)).length).toBe(1_001);
  });

  test("references in place what would use up the room that is to remain", async () => {
    put("a", "abc");
    const { artifacts, issues } = await collect(["a"], { minFreeBytes: Number.MAX_SAFE_INTEGER });
    expect(artifacts[0]!.uri).toStartWith("file:");
    expect(issues).toMatchObject([{ name: "a", reason: "not_stored" }]);
    expect(stored()).toEqual([]);
  });

  test("keeps names as they are, and their files can be read back", async () => {
    const odd = ["new\nline", 'quo"te', "it's a %41 #1?", "näme ☃ 😀", "-rf", "back\\slash"];
    for (const name of odd) put(`d ☃/${name}`, name);
    for (const storeMaxBytes of [0, 1_000]) {
      const { artifacts, issues } = await collect(["d ☃"], { storeMaxBytes });
      expect(issues).toEqual([]);
      expect(artifacts.map(({ name }) => name)).toEqual(odd.map((name) => `d ☃/${name}`).sort());
      for (const artifact of artifacts) expect((await read(artifact)).toString("utf8")).toBe(path.basename(artifact.name));
    }
  });

  test("refuses links out of the working directory and takes those inside", async () => {
    put("real", "inside");
    fs.symlinkSync("real", `${workdir}/link`);
    fs.symlinkSync("/etc/hostname", `${workdir}/out`);
    const { artifacts, issues } = await collect(["link", "out"]);
    expect(artifacts).toMatchObject([{ name: "link", sha256: sha256("inside") }]);
    expect(issues).toMatchObject([{ name: "out", reason: "path_escapes_root" }]);
  });

  test("reads a working directory that is itself reached through a link", async () => {
    put("a", "abc");
    const link = `${workdir}-link`;
    fs.symlinkSync(workdir, link);
    const { artifacts } = await collect(["a"], { workdir: link, storeMaxBytes: 0 });
    expect(artifacts[0]!.uri).toBe(`file://${fs.realpathSync(workdir)}/a`);
    expect((await read(artifacts[0]!)).toString()).toBe("abc");
  });

  test("reports what is missing, a missing working directory included", async () => {
    put("a", "abc");
    const { artifacts, issues } = await collect(["a", "b", "c/*"]);
    expect(artifacts).toHaveLength(1);
    expect(issues.map(({ pattern, reason }) => [pattern, reason])).toEqual([
      ["b", "missing"],
      ["c/*", "missing"],
    ]);
    expect((await collect(["a"], { workdir: `${workdir}/gone` })).issues).toMatchObject([{ pattern: "a", reason: "missing" }]);
    expect(await collect([])).toEqual({ artifacts: [], issues: [] });
  });

  test("reports a file that never stands still, and keeps nothing of it", async () => {
    put("restless", "x".repeat(3_000_000));
    put("still", "abc");
    const fd = fs.openSync(`${workdir}/restless`, "a");
    const timer = setInterval(() => fs.writeSync(fd, "y"), 0);
    try {
      const { artifacts, issues } = await collect(["*"], { storeMaxBytes: 100_000_000 });
      expect(artifacts.map(({ name }) => name)).toEqual(["still"]);
      expect(issues).toMatchObject([{ name: "restless", reason: "artifact_changed" }]);
      expect(stored()).toEqual([artifacts[0]!.artifact_id]);
    } finally {
      clearInterval(timer);
      fs.closeSync(fd);
    }
  });

  test("tries once more with a file that changed once", async () => {
    put("once", "x".repeat(3_000_000));
    const collecting = collect(["once"], { storeMaxBytes: 100_000_000 });
    let changed = false;
    const timer = setInterval(() => {
      // While it is being read: the copy is there already.
      if (changed || !stored().some((name) => name.endsWith(".part"))) return;
      changed = true;
      fs.appendFileSync(`${workdir}/once`, "y");
    }, 0);
    const { artifacts, issues } = await collecting;
    clearInterval(timer);
    expect(changed).toBe(true);
    expect(issues).toEqual([]);
    expect(artifacts).toMatchObject([{ size_bytes: 3_000_001, sha256: sha256(`${"x".repeat(3_000_000)}y`) }]);
    expect(stored()).toEqual([artifacts[0]!.artifact_id]);
  });

  test("comes to an end with a file that grows as fast as it is read", async () => {
    put("growing", Buffer.alloc(4 * 1024 * 1024));
    const grower = Bun.spawn(["sh", "-c", `while :; do head -c 1000000 /dev/zero; done >> ${workdir}/growing`], { stdin: "ignore" });
    let most = 0;
    const timer = setInterval(() => {
      for (const name of stored()) most = Math.max(most, fs.statSync(`${jobDir}/artifacts/${name}`, { throwIfNoEntry: false })?.size ?? 0);
    }, 0);
    try {
      const begun = fs.statSync(`${workdir}/growing`).size;
      const { artifacts, issues } = await collect(["growing"], { storeMaxBytes: 1_000_000_000_000 });
      expect([artifacts, issues.map(({ name, reason }) => [name, reason])]).toEqual([[], [["growing", "artifact_changed"]]]);
      const ended = fs.statSync(`${workdir}/growing`).size;
      expect(ended).toBeGreaterThan(begun);
      expect(most).toBeLessThanOrEqual(ended);
      expect(stored()).toEqual([]);
    } finally {
      clearInterval(timer);
      grower.kill("SIGKILL");
      await grower.exited;
    }
  }, 20_000);

  test("names files that the system will not read, or whose size it does not know, and goes on", async () => {
    put("good", "abc");
    // Regular files by their type; a mount puts them below a working directory of the test's.
    const { issues } = await collect(["self/mem", "self/status"], { workdir: "/proc", startedIn: null });
    expect(issues.map(({ pattern, reason }) => [pattern, reason])).toEqual([
      ["self/mem", "artifact_unreadable"],
      ["self/status", "artifact_changed"],
    ]);
  });

  test("ends with what there is when nobody wants the rest any more, and says what is missing", async () => {
    put("a", "abc");
    const canceled = new AbortController();
    const big = fs.openSync(`${workdir}/b`, "w");
    fs.ftruncateSync(big, 1_000_000_000_000);
    fs.closeSync(big);
    const collecting = collect(["*"], { canceled: canceled.signal });
    setTimeout(() => canceled.abort(), 100);
    const { artifacts, issues } = await collecting;
    expect(artifacts).toMatchObject([{ name: "a" }]);
    expect(issues).toMatchObject([{ pattern: "*", reason: "canceled" }]);
    expect(stored()).toEqual([artifacts[0]!.artifact_id]);
  });

  test("does not look into a directory that has taken the place of the one that the job started in", async () => {
    const startedIn = identifyWorkdir(workdir);
    const elsewhere = path.join(path.dirname(workdir), "elsewhere");
    fs.mkdirSync(elsewhere);
    fs.writeFileSync(`${elsewhere}/secret`, "not the job's");
    put("secret", "the job's");
    expect((await collect(["secret"], { startedIn })).artifacts).toMatchObject([{ sha256: sha256("the job's") }]);
    fs.renameSync(workdir, `${workdir}.old`);
    for (const replace of [() => fs.symlinkSync(elsewhere, workdir), () => fs.renameSync(elsewhere, workdir)]) {
      replace();
      const { artifacts, issues } = await collect(["secret"], { startedIn });
      expect(artifacts).toEqual([]);
      expect(issues).toMatchObject([{ pattern: "secret", reason: "missing", detail: expect.stringContaining("no longer the one") }]);
      fs.rmSync(workdir, { recursive: true, force: true });
      if (!fs.existsSync(elsewhere)) fs.mkdirSync(elsewhere);
    }
    // The same directory under the name by another way is the same.
    fs.symlinkSync(`${workdir}.old`, workdir);
    expect((await collect(["secret"], { startedIn })).artifacts).toMatchObject([{ sha256: sha256("the job's") }]);
  });

  test("stops when it is told to", async () => {
    put("a", "abc");
    await expect(collect(["a"], { signal: AbortSignal.abort(new Error("draining")) })).rejects.toThrow("draining");
    expect(stored()).toEqual([]);
  });
});

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
