import { beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { Artifact, type NewArtifact } from "../../src/domain/artifact.ts";
import { openArtifact } from "../../src/execution/artifact-content.ts";
import { attemptDirectory } from "../../src/execution/attempt-dir.ts";
import { attemptDocuments, type DocumentsInput, flushWay } from "../../src/execution/attempt-documents.ts";
import type { AttemptSpec, ExitRecord } from "../../src/execution/spool-records.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();
let jobDir = "";
let attemptDir = "";

beforeEach(() => {
  jobDir = path.join(temporary(), "job_a");
  attemptDir = attemptDirectory(jobDir, 2);
  fs.mkdirSync(attemptDir, { recursive: true });
});

const sha256 = (data: string): string => new Bun.CryptoHasher("sha256").update(data).digest("hex");

const spec: AttemptSpec = {
  record_version: 1,
  job_id: "job_a",
  attempt: 2,
  cluster: "c",
  argv: ["python3", "train.py"],
  workdir: "/home/u/w",
  env: { PATH: "/bin", API_KEY: "hunter2" },
  login: false,
  env_setup: "module load x",
  timeout_seconds: null,
  quota: { stream_bytes: 10, job_bytes: 20, used: { stdout: 1, stderr: 0 } },
  cancel_grace_seconds: 10,
};

const exitWith = (stdout: Partial<ExitRecord["streams"]["stdout"]>): ExitRecord => ({
  record_version: 1,
  outcome: { reason: "completed", exit_code: 0, signal: null, message: "exited with code 0", residual: [] },
  started_at: "2026-01-02T03:04:05.678Z",
  ended_at: "2026-01-02T03:04:06.678Z",
  streams: {
    stdout: { observed: 5, kept: 5, dropped: 0, truncated: null, complete: true, sha256: sha256("hello"), ...stdout },
    stderr: { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: sha256("") },
  },
  usage: { user_seconds: 1, system_seconds: 0.5, max_rss_bytes: 1_000 },
  leftover: 0,
});

const output: NewArtifact = {
  artifact_id: "artifact_1",
  kind: "execution_output",
  name: "out/☃.bin",
  uri: "spool:artifacts/artifact_1",
  size_bytes: 3,
  sha256: sha256("abc"),
  metadata: {},
};

const input = (more: Partial<DocumentsInput> = {}): DocumentsInput => ({
  jobDir,
  attemptDir,
  spec,
  exit: exitWith({}),
  scriptSha256: null,
  outputs: [output],
  issues: [{ pattern: "b", name: "b", reason: "missing", detail: "nothing matches" }],
  used: [{ artifact_id: "artifact_0", sha256: "0".repeat(64), provenance: null }],
  relayVersion: "1.2.3",
  hostname: "node1",
  ...more,
});

async function content(artifact: NewArtifact): Promise<string> {
  const record = v.parse(Artifact, { ...artifact, job_id: "job_a", sequence: 1, created_at: "2026-01-02T03:04:05.678Z" });
  return new Response((await openArtifact(record, jobDir)).stream()).text();
}

describe("the documents of an attempt", () => {
  test("are its logs, their capture, and where all of it came from", async () => {
    fs.writeFileSync(path.join(attemptDir, "stdout.log"), "hello");
    fs.writeFileSync(path.join(attemptDir, "stderr.log"), "");
    const { artifacts } = await attemptDocuments(input());
    expect(artifacts.map(({ kind, name }) => [kind, name])).toEqual([
      ["stdout", "stdout.log"],
      ["stderr", "stderr.log"],
      ["log_capture", "log-capture.json"],
      ["provenance", "provenance.json"],
    ]);
    const [stdout, stderr, capture, provenance] = artifacts as [NewArtifact, NewArtifact, NewArtifact, NewArtifact];
    expect(stdout).toMatchObject({ uri: "spool:attempt-2/stdout.log", size_bytes: 5, sha256: sha256("hello"), metadata: { attempt: 2 } });
    expect(await content(stdout)).toBe("hello");
    expect(await content(stderr)).toBe("");
    expect(JSON.parse(await content(capture))).toEqual({
      schema_version: "clio-relay.log-capture.v1",
      job_id: "job_a",
      attempt: 2,
      quota: spec.quota,
      streams: exitWith({}).streams,
    });
    const text = await content(provenance);
    expect(JSON.parse(text)).toEqual({
      schema_version: "clio-relay.provenance.v1",
      relay_version: "1.2.3",
      cluster: "c",
      job_id: "job_a",
      attempt: 2,
      host: "node1",
      command: {
        argv: spec.argv,
        script_sha256: null,
        workdir: "/home/u/w",
        login: false,
        env_setup_sha256: sha256("module load x"),
        env_names: ["API_KEY", "PATH"],
        timeout_seconds: null,
      },
      started_at: "2026-01-02T03:04:05.678Z",
      ended_at: "2026-01-02T03:04:06.678Z",
      outcome: exitWith({}).outcome,
      usage: exitWith({}).usage,
      used_artifacts: [{ artifact_id: "artifact_0", sha256: "0".repeat(64), provenance: null }],
      logs: [stdout, stderr].map(({ artifact_id, name, uri, size_bytes, sha256 }) => ({ artifact_id, name, uri, size_bytes, sha256 })),
      outputs: [{ artifact_id: "artifact_1", name: "out/☃.bin", uri: output.uri, size_bytes: 3, sha256: output.sha256 }],
      output_issues: input().issues,
    });
    expect(text).not.toContain("hunter2");
    expect(text).not.toContain("module load");
    expect(fs.readdirSync(path.join(jobDir, "artifacts")).sort()).toEqual([capture.artifact_id, provenance.artifact_id].sort());
  });

  test("hash a log themselves when the shim could not, or when it has another length", async () => {
    fs.writeFileSync(path.join(attemptDir, "stdout.log"), "hello");
    for (const stdout of [
      { sha256: null, complete: false },
      { kept: 9, sha256: sha256("something") },
    ]) {
      const [artifact] = (await attemptDocuments(input({ exit: exitWith(stdout) }))).artifacts;
      expect(artifact).toMatchObject({ kind: "stdout", size_bytes: 5, sha256: sha256("hello") });
    }
  });

  test("hold of a log what was written to it, and not what a job put behind that", async () => {
    const file = path.join(attemptDir, "stdout.log");
    fs.writeFileSync(file, "hello");
    fs.truncateSync(file, 2 ** 43);
    const [artifact] = (await attemptDocuments(input())).artifacts;
    expect(artifact).toMatchObject({ kind: "stdout", size_bytes: 5, sha256: sha256("hello") });
    expect(await content(artifact!)).toBe("hello");
  });

  test("leave out a log while which is read the job is canceled, and stop with their worker", async () => {
    const file = path.join(attemptDir, "stdout.log");
    fs.writeFileSync(file, "hello");
    const exit = exitWith({ sha256: null, kept: 2 ** 43 });
    fs.truncateSync(file, 2 ** 43);
    const canceled = new AbortController();
    const made = attemptDocuments(input({ exit, canceled: canceled.signal }));
    canceled.abort();
    expect(await made).toMatchObject({ left: ["stdout"], artifacts: [{ kind: "log_capture" }, { kind: "provenance" }] });
    const worker = new AbortController();
    const stopped = attemptDocuments(input({ exit, signal: worker.signal, canceled: canceled.signal }));
    worker.abort(new Error("draining"));
    await expect(stopped).rejects.toThrow();
  });

  test("are not written through a link in the place of their directory, nor in that of the job's", async () => {
    const elsewhere = temporary();
    fs.symlinkSync(elsewhere, path.join(jobDir, "artifacts"));
    expect(await attemptDocuments(input()).catch((error: NodeJS.ErrnoException) => error.code)).toBe("ENOTDIR");
    fs.rmSync(path.join(jobDir, "artifacts"));
    fs.renameSync(jobDir, `${jobDir}.x`);
    fs.symlinkSync(elsewhere, jobDir);
    expect(await attemptDocuments(input()).catch((error: NodeJS.ErrnoException) => error.code)).toBe("ENOTDIR");
    expect(fs.readdirSync(elsewhere)).toEqual([]);
  });

  test("are written once the way to them is flushed, which makes their directory", async () => {
    const { artifacts } = await attemptDocuments(input({ way: () => flushWay(jobDir) }));
    expect(fs.readdirSync(path.join(jobDir, "artifacts")).sort()).toEqual(
      artifacts
        .filter(({ uri }) => uri.includes("artifacts/"))
        .map(({ artifact_id }) => artifact_id)
        .sort(),
    );
    const unflushed = attemptDocuments(input({ way: () => Promise.reject(new Error("no disk")) }));
    await expect(unflushed).rejects.toThrow("no disk");
  });

  test("of a job that never started are two", async () => {
    const { artifacts } = await attemptDocuments(input({ outputs: [], scriptSha256: "f".repeat(64) }));
    expect(artifacts.map(({ kind }) => kind)).toEqual(["log_capture", "provenance"]);
    expect(JSON.parse(await content(artifacts[1]!))).toMatchObject({ command: { script_sha256: "f".repeat(64) }, logs: [], outputs: [] });
  });
});
