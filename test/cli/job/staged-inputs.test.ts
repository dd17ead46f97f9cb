import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { pinsOf } from "../../../src/api/staging/pins.ts";
import { Interrupted } from "../../../src/cli/failure.ts";
import type { GivenInputs, InputSettings } from "../../../src/cli/job/staged-inputs.ts";
import { findInputs, submitWithInputs } from "../../../src/cli/job/staged-inputs.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import type { JobSubmissionInput } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { ArtifactUses } from "../../../src/domain/lineage.ts";
import { WorkerHarness } from "../../roles/worker/harness.ts";
import { capturedIo } from "../captured-io.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness().start();
});
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
});

const SETTINGS: InputSettings = {
  input_workspace_root: null,
  input_file_max_bytes: LIMITS.inputFileBytes,
  input_total_max_bytes: LIMITS.inputTotalBytes,
  input_file_max_count: LIMITS.inputFilesMax,
};
const SUBMISSION = { cluster: "local", kind: "command", spec: { argv: ["true"] } } as JobSubmissionInput;

type Submit = Parameters<typeof submitWithInputs>[2];

const submitWith = (given: readonly (readonly [string, string])[], submit: Submit, io = capturedIo({ cwd: worker.directory })) =>
  submitWithInputs({ io, settings: SETTINGS, given, maxBytes: undefined, cluster: worker.client }, SUBMISSION, submit);

const used = ({ used_artifact_refs = [] }: JobSubmissionInput): string[] => used_artifact_refs.map(({ artifact_id }) => artifact_id);

const full = (artifactId: string): RelayError =>
  new RelayError("job_submission_refused", "as many consumers as it may", { cause: "artifact_consumers", artifact_id: artifactId });

test("what another option brings along is named by it, and has a bound that --max-input-bytes does not lift", async () => {
  const io = capturedIo({ cwd: worker.directory });
  fs.writeFileSync(path.join(worker.directory, "ask.md"), "x".repeat(101));
  const found = (of: NonNullable<GivenInputs[number][2]>, maxBytes: number) =>
    findInputs(io, [["prompt", "ask.md", of]], SETTINGS, maxBytes).catch(({ code, message, hint }: RelayError) => ({
      code,
      message,
      hint,
    }));
  const option = "--prompt-file";
  const refused = { code: "payload_too_large", message: "--prompt-file ask.md: 101 bytes, and 100 are allowed" } as const;
  expect(await found({ option, maxBytes: 100 }, 1_000)).toMatchObject({ ...refused, hint: undefined });
  expect(await found({ option, maxBytes: 1_000 }, 100)).toMatchObject({ ...refused, hint: "--max-input-bytes 101 lets them go" });
});

test("an artifact that may have no more consumers is followed by another one of the same content; the others stay", async () => {
  for (const name of ["a.txt", "b.txt"]) fs.writeFileSync(path.join(worker.directory, name), name);
  const tried: JobSubmissionInput[] = [];
  const receipt = await submitWith(
    [
      ["a", "a.txt"],
      ["b", "b.txt"],
    ],
    (complete) => {
      tried.push(complete);
      if (tried.length < 3) throw full(used(complete)[1]!);
      return worker.client.submit(complete);
    },
  );
  expect((await worker.ended(receipt.job_id)).job.state).toBe("succeeded");
  const [first, second, third] = tried.map(used);
  expect([second![0], third![0]]).toEqual([first![0], first![0]]);
  expect(new Set([first![1], second![1], third![1]]).size).toBe(3);
});

test("one that was pinned besides, and any other refusal, is what the person is told", async () => {
  fs.writeFileSync(path.join(worker.directory, "c.txt"), "c");
  for (const failure of [full("artifact_of-somebody"), new RelayError("job_submission_refused", "no"), new RelayError("link_down", "no")]) {
    let tries = 0;
    const refused = await submitWith([["c", "c.txt"]], () => {
      tries += 1;
      throw failure;
    }).catch((error: unknown) => error);
    expect([refused, tries]).toEqual([failure, 1]);
  }
});

test("many inputs are taken, and each pin says which it is", async () => {
  const given = Array.from({ length: 40 }, (_, n) => {
    fs.writeFileSync(path.join(worker.directory, `n${n}.dat`), `file ${n}`);
    return [`input_${n}`, `n${n}.dat`] as const;
  });
  const receipt = await submitWith(given, (complete) => worker.client.submit(complete));
  expect(receipt.used_artifact_refs.map(({ provenance }) => provenance?.arg).sort()).toEqual(given.map(([name]) => name).sort());
  const status = await worker.ended(receipt.job_id);
  expect([status.job.state, status.inputs.length]).toEqual(["succeeded", 40]);
});

test("where all pins would be too large, they say what is used and no more", () => {
  const one = (name: string, n: number) => ({ name, artifact_id: `artifact_${n.toString(16).padStart(32, "0")}`, sha256: "a".repeat(64) });
  const many = (length: number) => pinsOf(Array.from({ length }, (_, n) => one(`${"x".repeat(60)}${n}`, n)));
  expect(v.parse(ArtifactUses, many(700)).every(({ provenance }) => provenance?.evidence === "schema-arg")).toBe(true);
  expect(v.parse(ArtifactUses, many(1_000)).every(({ provenance }) => provenance === null)).toBe(true);
  expect(pinsOf([one("a", 1), one("b", 1)])).toHaveLength(1);
});

test("Ctrl-C ends it before the job is submitted, and says what stays", async () => {
  fs.writeFileSync(path.join(worker.directory, "long.bin"), Buffer.alloc(900_000, "long"));
  const io = capturedIo({ cwd: worker.directory });
  // As soon as it is heard.
  const onSignal: typeof io.onSignal = (_signal, listener) => {
    queueMicrotask(listener);
    return () => undefined;
  };
  const notReached: Submit = () => Promise.reject(new Error("it was submitted"));
  const ended = await submitWith([["x", "long.bin"]], notReached, { ...io, onSignal }).catch((error: unknown) => error);
  expect(ended).toBeInstanceOf(Interrupted);
  expect(io.stderr.text).toContain("interrupted before the job was submitted; what was sent is kept for a day");
});
