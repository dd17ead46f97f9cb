import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import {
  type AttemptPlan,
  attemptDirectory,
  clearMaking,
  eventsDirectory,
  jobDirectory,
  logSizes,
  prepareAttempt,
  readExit,
  readProcess,
  readSpec,
  readStart,
  readTruncation,
  scriptPath,
  voidAttempt,
  writeCancel,
  writeExit,
} from "../../src/execution/attempt-dir.ts";
import type { ExitRecord } from "../../src/execution/spool-records.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();
const fresh = (): string => attemptDirectory(jobDirectory(temporary(), "job_a"), 1);

const plan: AttemptPlan = {
  job_id: "job_a",
  attempt: 1,
  cluster: "local",
  argv: ["true", "ünï\ncode"],
  workdir: "/",
  env: { A: "b" },
  login: false,
  env_setup: null,
  timeout_seconds: 1.5,
  quota: { stream_bytes: 1, job_bytes: 2, used: { stdout: 0, stderr: 0 } },
  cancel_grace_seconds: 10,
};

const stream = { observed: 3, kept: 2, dropped: 1, truncated: "stream_quota", complete: true, sha256: "a".repeat(64) } as const;
const exit: ExitRecord = {
  record_version: 1,
  outcome: { reason: "completed", exit_code: 0, signal: null, message: "", residual: [] },
  started_at: "2026-01-02T03:04:05.678Z",
  ended_at: "2026-01-02T03:04:05.678Z",
  streams: { stdout: stream, stderr: { ...stream, sha256: null, truncated: null } },
  usage: null,
  leftover: 0,
};

describe("preparing", () => {
  test("removes what somebody had put there before, pipes in the place of its files included", () => {
    const directory = fresh();
    fs.mkdirSync(directory, { recursive: true });
    for (const name of ["spec.json.tmp", "shim.log", "events"])
      expect(Bun.spawnSync(["mkfifo", path.join(directory, name)]).exitCode).toBe(0);
    prepareAttempt(directory, plan);
    expect(readSpec(directory)).toMatchObject({ job_id: plan.job_id });
    expect(fs.readdirSync(directory).sort()).toEqual(["events", "spec.json"]);
  });

  test("writes what the shim needs, for the user alone, with the mark of the attempt", () => {
    const directory = fresh();
    const spec = prepareAttempt(directory, { ...plan, script: "#!/bin/sh\necho hi\n" });
    expect(spec).toEqual({ record_version: 1, ...plan, env: { A: "b", CLIO_RELAY_ATTEMPT: "job_a/1" } });
    expect(readSpec(directory)).toEqual(spec);
    expect(fs.readFileSync(scriptPath(directory), "utf8")).toBe("#!/bin/sh\necho hi\n");
    expect(fs.readdirSync(directory).sort()).toEqual(["events", "script", "spec.json"]);
    for (const made of [directory, eventsDirectory(directory)]) expect(fs.statSync(made).mode & 0o777).toBe(0o700);
    for (const made of ["script", "spec.json"]) expect(fs.statSync(path.join(directory, made)).mode & 0o777).toBe(0o600);
  });

  test("again replaces what an interrupted try left", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    fs.writeFileSync(path.join(directory, "spec.json.tmp"), "{");
    prepareAttempt(directory, { ...plan, argv: ["false"] });
    expect(readSpec(directory)?.argv).toEqual(["false"]);
    expect(fs.readdirSync(directory).sort()).toEqual(["events", "spec.json"]);
  });

  test("refuses what is too large to be written down", () => {
    const directory = fresh();
    expect(() => prepareAttempt(directory, { ...plan, argv: ["x".repeat(1024 * 1024)] })).toThrow(
      expect.objectContaining({ code: "job_submission_refused" }),
    );
    expect(fs.existsSync(directory)).toBe(false);
  });
});

describe("records", () => {
  test("that are not there are null", () => {
    for (const directory of [fresh(), "/dev/null"]) {
      expect(readSpec(directory)).toBeNull();
      expect(readStart(directory)).toBeNull();
      expect(readProcess(directory)).toBeNull();
      expect(readExit(directory)).toBeNull();
      expect(readTruncation(directory, "stdout")).toBeNull();
      expect(logSizes(directory)).toEqual({ stdout: 0, stderr: 0 });
    }
  });

  for (const [title, text] of [
    ["empty", ""],
    ["cut short", '{"record_version":1,"claimed_by":"sh'],
    ["not an object", "[]"],
    ["of another shape", '{"record_version":1,"claimed_by":"nobody"}'],
    ["too large", `"${"x".repeat(1024 * 1024)}"`],
    ["binary", "\u0000\u0001"],
  ] as const) {
    test(`that are ${title} are torn, and a torn claim is a shim's`, () => {
      const directory = fresh();
      prepareAttempt(directory, plan);
      for (const name of ["start.json", "process.json", "exit.json", "truncated-stdout.json"]) {
        fs.writeFileSync(path.join(directory, name), text);
      }
      expect(readStart(directory)).toBe("torn");
      expect(readExit(directory)).toBe("torn");
      expect(readProcess(directory)).toBeNull();
      expect(readTruncation(directory, "stdout")).toBeNull();
      expect(voidAttempt(directory, "a test")).toBe(false);
      expect(fs.readFileSync(path.join(directory, "start.json"), "utf8")).toBe(text);
    });
  }

  test("of a newer shim are read without what is unknown", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    const newer = { ...exit, extra: 1, outcome: { ...exit.outcome, more: [] } };
    fs.writeFileSync(path.join(directory, "exit.json"), JSON.stringify(newer));
    expect(readExit(directory)).toEqual(exit);
    const shim = { pid: 2, start_time: 3, boot_id: "b", hostname: "h" };
    const claim = { record_version: 1, claimed_by: "shim", shim, cgroup: null, version: "9.9.9" };
    fs.writeFileSync(path.join(directory, "start.json"), JSON.stringify({ ...claim, extra: {} }));
    expect(readStart(directory)).toEqual(claim as never);
  });

  test("of a later version than the claim's are torn", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    for (const start of [null, "", JSON.stringify({ record_version: 1, claimed_by: "worker", reason: "x" })]) {
      if (start !== null) fs.writeFileSync(path.join(directory, "start.json"), start);
      fs.writeFileSync(path.join(directory, "exit.json"), JSON.stringify({ ...exit, record_version: 2 }));
      expect(readExit(directory)).toBe("torn");
    }
  });

  test("of a later version are refused by name, whatever they hold", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    const reads = {
      "start.json": () => readStart(directory),
      "process.json": () => readProcess(directory),
      "exit.json": () => readExit(directory),
      "truncated-stderr.json": () => readTruncation(directory, "stderr"),
      "spec.json": () => readSpec(directory),
    };
    for (const [file, read] of Object.entries(reads)) {
      for (const record of [{ record_version: 2 }, { ...exit, record_version: 1e9 }]) {
        fs.writeFileSync(path.join(directory, file), JSON.stringify(record));
        const data = { file, record_version: record.record_version, supported: 1 };
        expect(read).toThrow(expect.objectContaining({ code: "version_mismatch", data }));
      }
    }
  });

  test("in whose place something else is are torn, and nothing waits for them", () => {
    for (const put of [
      (file: string) => fs.mkdirSync(file),
      (file: string) => expect(Bun.spawnSync(["mkfifo", file]).exitCode).toBe(0),
      (file: string) => fs.symlinkSync("/dev/zero", file),
      (file: string) => {
        fs.writeFileSync(`${file}.elsewhere`, JSON.stringify(exit));
        fs.symlinkSync(`${file}.elsewhere`, file);
      },
    ]) {
      const directory = fresh();
      prepareAttempt(directory, plan);
      for (const name of ["start.json", "process.json", "exit.json", "truncated-stdout.json", "stdout.log"])
        put(path.join(directory, name));
      expect(readStart(directory)).toBe("torn");
      expect(readExit(directory)).toBe("torn");
      expect(readProcess(directory)).toBeNull();
      expect(readTruncation(directory, "stdout")).toBeNull();
      expect(logSizes(directory).stdout).toBe(0);
      expect(voidAttempt(directory, "a test")).toBe(false);
    }
  });
});

describe("voiding", () => {
  test("removes what a preparation that was cut short had in the making, and nothing of those who live", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    const { pid: gone } = Bun.spawnSync(["true"]);
    const making = (name: string, pid: number): string => `.${name}.${pid}.${crypto.randomUUID()}.tmp`;
    const living = making("start.json", process.ppid);
    for (const name of [making("spec.json", gone), making(".cancel.json", gone), `.exit.json.${gone}.tmp`, living]) {
      fs.writeFileSync(path.join(directory, name), "{");
    }
    expect(voidAttempt(directory, "never started")).toBe(true);
    expect(fs.readdirSync(directory).sort()).toEqual([living, "events", "spec.json", "start.json"].sort());
  });

  test("makes the directory where there is none, and holds", () => {
    const directory = fresh();
    expect(voidAttempt(directory, "never started")).toBe(true);
    expect(readStart(directory)).toEqual({ record_version: 1, claimed_by: "worker", reason: "never started" });
    expect(voidAttempt(directory, "another reason")).toBe(true);
    expect(readStart(directory)).toMatchObject({ reason: "never started" });
    expect(fs.readdirSync(directory)).toEqual(["start.json"]);
  });
});

describe("the worker's own records", () => {
  test("an exit record is written once", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    expect(writeExit(directory, exit)).toBe(true);
    expect(writeExit(directory, { ...exit, leftover: 9 })).toBe(false);
    expect(readExit(directory)).toEqual(exit);
  });

  test("a cancel is written once", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    writeCancel(directory, "2026-01-02T03:04:05.678Z");
    writeCancel(directory, "2027-01-02T03:04:05.678Z");
    expect(JSON.parse(fs.readFileSync(path.join(directory, "cancel.json"), "utf8"))).toEqual({
      record_version: 1,
      requested_at: "2026-01-02T03:04:05.678Z",
    });
  });

  test("log sizes are those of the files", () => {
    const directory = fresh();
    prepareAttempt(directory, plan);
    fs.writeFileSync(path.join(directory, "stderr.log"), "12345");
    expect(logSizes(directory)).toEqual({ stdout: 0, stderr: 5 });
  });
});

test("an attempt that has ended keeps nothing that was in the making, but what somebody still makes", () => {
  const directory = fresh();
  prepareAttempt(directory, plan);
  const uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const gone = Bun.spawnSync(["true"]).pid;
  const ours = `.exit.json.${process.pid}.${uuid}.tmp`;
  for (const name of [ours, `.cancel.json.${gone}.${uuid}.tmp`]) fs.writeFileSync(path.join(directory, name), "{");
  clearMaking(directory);
  expect(fs.readdirSync(directory).sort()).toEqual([ours, "events", "spec.json"]);
  fs.rmSync(directory, { recursive: true });
  clearMaking(directory);
  expect(fs.existsSync(directory)).toBe(false);
});
