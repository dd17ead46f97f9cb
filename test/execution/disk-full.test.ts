import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { collectOutputs } from "../../src/execution/artifacts.ts";
import { prepareAttempt, readExit, readStart, readTruncation, voidAttempt } from "../../src/execution/attempt-dir.ts";
import { emit } from "../../src/execution/emit.ts";
import { readEmitFiles } from "../../src/execution/emit-files.ts";
import { describeWith } from "../runner/components.ts";
import { eventually } from "../runner/wait.ts";
import { sh, testAttempts } from "./attempts.ts";
import { fillInodes, fillUp, smallFileSystems } from "./tmpfs.ts";

const KiB = 1024;

describeWith("tmpfs", "on a full disk", () => {
  const small = smallFileSystems();
  const attempt = testAttempts([process.execPath, path.join(import.meta.dir, "impatient-shim-entry.ts")]);

  test("output is cut with its reason, the job goes on, and its end is recorded", async () => {
    const root = small("512k");
    const job = attempt(sh("head -c 2000000 /dev/zero; echo after; echo problem >&2; exit 6"), {}, root);
    const exit = await job.run();
    expect(exit.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 6 });
    const { stdout } = exit.streams;
    expect(stdout).toMatchObject({ observed: 2_000_006, truncated: "disk_full", complete: true });
    expect(stdout.kept).toBeGreaterThan(0);
    expect(stdout.kept + stdout.dropped).toBe(stdout.observed);
    expect(fs.statSync(job.file("stdout.log")).size).toBe(stdout.kept);
    expect(stdout.sha256).toBe(new Bun.CryptoHasher("sha256").update(job.bytes("stdout.log")).digest("hex"));
    expect(fs.readdirSync(job.directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("output waits for room that comes, and nothing of it is lost", async () => {
    const root = small("512k");
    const job = attempt(sh("until [ -e go ]; do sleep 0.02; done; head -c 200000 /dev/zero; echo end"), {}, root);
    job.start();
    await job.started();
    const ballast = fillUp(root, 8 * KiB);
    fs.writeFileSync(`${job.workdir}/go`, "");
    await eventually(() => job.text("shim.log").includes("trying again") || fs.statSync(job.file("stdout.log")).size >= 8 * KiB, {
      what: "the first bytes",
    });
    fs.rmSync(ballast);
    const exit = await job.exit();
    expect(exit.streams.stdout).toMatchObject({ observed: 200_004, kept: 200_004, dropped: 0, truncated: null, complete: true });
    expect(fs.statSync(job.file("stdout.log")).size).toBe(200_004);
    expect(readTruncation(job.directory, "stdout")).toBeNull();
  });

  test("the end of a job is recorded though the disk filled up while it ran", async () => {
    const root = small("512k");
    const job = attempt(sh("until [ -e go ]; do sleep 0.02; done; exit 9"), {}, root);
    job.start();
    await job.started();
    fs.writeFileSync(`${job.workdir}/go.tmp`, "");
    fillUp(root);
    fs.renameSync(`${job.workdir}/go.tmp`, `${job.workdir}/go`);
    expect((await job.exit()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 9 });
  });

  test("the end of a job waits for the room that its name takes, and the job is not run again", async () => {
    const root = small("512k,nr_inodes=64");
    const job = attempt(sh("echo ran >> runs; until [ -e go ]; do sleep 0.02; done; exit 9"), {}, root);
    fs.writeFileSync(job.file("shim.log"), "");
    job.start();
    await job.started();
    await eventually(() => fs.existsSync(`${job.workdir}/runs`), { what: "the job" });
    // Names that go after the start would make room for the one that must find none.
    const waiting = (): string[] => fs.readdirSync(job.directory).filter((name) => /^\.(?:start|process)\.json\./.test(name));
    await eventually(() => waiting().length === 0, { what: "the files that the start needs no more" });
    fs.writeFileSync(`${job.workdir}/go.tmp`, "");
    const fillers = fillInodes(root);
    fs.renameSync(`${job.workdir}/go.tmp`, `${job.workdir}/go`);
    await eventually(() => job.text("shim.log").includes("exit.json"), { what: "the first try" });
    expect(readExit(job.directory)).toBeNull();
    for (const file of fillers) fs.rmSync(file);
    expect((await job.exit()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 9 });
    expect(fs.readFileSync(`${job.workdir}/runs`, "utf8")).toBe("ran\n");
  });

  test("a shim that finds no room to claim runs nothing and leaves nothing", async () => {
    const root = small("512k");
    const job = attempt(sh("touch ran"), {}, root);
    fillUp(root);
    const before = fs.readdirSync(job.directory);
    const shim = job.start();
    expect(await shim.exited).toBe(1);
    expect(readStart(job.directory)).toBeNull();
    expect(readExit(job.directory)).toBeNull();
    expect(fs.existsSync(`${job.workdir}/ran`)).toBe(false);
    expect(fs.readdirSync(job.directory).filter((name) => !name.startsWith("shim."))).toEqual(before);
  });

  test("preparing and voiding are refused, with nothing torn", () => {
    const root = small("128k");
    const job = attempt(["true"], {}, root);
    const spec = job.json("spec.json");
    let ballast = fillUp(root);
    const plan = { ...spec, argv: ["x".repeat(20_000)] } as unknown as Parameters<typeof prepareAttempt>[1];
    const refusal = expect.objectContaining({ code: "storage_admission_refused" });
    expect(() => prepareAttempt(job.directory, plan)).toThrow(refusal);
    // What lay there was removed; a part of the new one is not there.
    expect(job.text("spec.json")).toBe("");
    fs.rmSync(ballast);
    ballast = fillUp(root);
    expect(() => voidAttempt(job.directory, "no room")).toThrow(refusal);
    expect(readStart(job.directory)).toBeNull();
    fs.rmSync(ballast);
    expect(fs.readdirSync(job.directory).sort()).toEqual(["events"]);
    expect(voidAttempt(job.directory, "room")).toBe(true);
  });

  test("an output without room for a copy is referenced in place", async () => {
    const root = small("512k");
    const job = attempt(["true"], {}, root);
    fs.writeFileSync(`${job.workdir}/result`, Buffer.alloc(200 * KiB, 7));
    fillUp(root, 100 * KiB);
    const { artifacts, issues } = await collectOutputs({
      workdir: job.workdir,
      startedIn: null,
      patterns: ["result"],
      jobDir: job.jobDir,
      storeMaxBytes: 1024 * KiB,
      minFreeBytes: -1_000_000,
      maxFiles: 10,
      attempt: 1,
    });
    expect(issues).toMatchObject([{ name: "result", reason: "not_stored" }]);
    expect(artifacts).toMatchObject([{ name: "result", size_bytes: 200 * KiB, metadata: { stored: false } }]);
    expect(artifacts[0]!.uri).toStartWith("file:///");
    expect(fs.readdirSync(path.join(job.jobDir, "artifacts"))).toEqual([]);
  });

  test("a report that does not fit is refused, and the next one is whole", () => {
    const root = small("64k");
    const events = path.join(root, "events");
    fs.mkdirSync(events);
    emit(events, { type: "progress", current: 1, message: "m".repeat(1_000) });
    const ballast = fillUp(root);
    expect(() => emit(events, { type: "progress", current: 2, message: "m".repeat(4_000) })).toThrow(
      expect.objectContaining({ code: "storage_admission_refused" }),
    );
    fs.rmSync(ballast);
    emit(events, { type: "progress", current: 3 });
    const lines = readEmitFiles(events, new Map()).batches.flatMap((batch) => batch.lines);
    expect(lines.filter((line) => line.type === "progress").map((line) => line.progress.current)).toEqual([1, 3]);
    expect(lines.filter((line) => line.type === "refused").length).toBeLessThanOrEqual(1);
  });
});
