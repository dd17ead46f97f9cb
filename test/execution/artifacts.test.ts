import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { identifyWorkdir } from "../../src/execution/workdir.ts";
import { collect, jobDir, openFiles, placesOfAJob, put, read, record, sha256, stored, workdir } from "./job-places.ts";

placesOfAJob();

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
    const more = Buffer.alloc(1_000_000);
    let most = 0;
    // In this process, between any two of its looks: another one may get no turn in time.
    const timer = setInterval(() => {
      fs.appendFileSync(`${workdir}/growing`, more);
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
    }
  });

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
    // As soon as the small one is there.
    const timer = setInterval(() => stored().some((name) => !name.endsWith(".part")) && canceled.abort(), 5);
    const { artifacts, issues } = await collect(["*"], { canceled: canceled.signal }).finally(() => clearInterval(timer));
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
