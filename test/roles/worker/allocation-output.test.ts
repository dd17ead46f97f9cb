import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { ExitRecord, ExitStream } from "../../../src/execution/spool-records.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { AllocationOutput } from "../../../src/roles/worker/engines/jarvis/allocation-output.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directories = temporaryDirectories();
const NONE: ExitStream = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: sha256Hex("") };

/** An attempt whose submission has said `submitted`, and a run that writes to files of its own. */
function place({ submitted = "submitted\n", streamBytes = 1_000, jobBytes = 2_000, used = 0, own = {} as Partial<ExitStream> } = {}) {
  const directory = path.join(directories(), "job", "attempt-1");
  const run = directories();
  fs.mkdirSync(directory, { recursive: true });
  const log = path.join(directory, "stdout.log");
  fs.writeFileSync(log, submitted);
  const kept = Buffer.byteLength(submitted);
  const stdout = { ...NONE, observed: kept, kept, sha256: sha256Hex(submitted), ...own };
  const exit = { streams: { stdout, stderr: NONE } } as ExitRecord;
  const quota = { stream_bytes: streamBytes, job_bytes: jobBytes, used: { stdout: used, stderr: 0 } };
  const sources = { stdout: path.join(run, "stdout.log"), stderr: path.join(run, "stderr.log") };
  const output = () => new AllocationOutput({ directory, sources, exit, quota });
  return { directory, log, sources, output, exit, text: () => fs.readFileSync(log, "utf8") };
}

test("what a run writes comes behind what its submission has said, once, whichever worker looks", async () => {
  const { output, sources, text, exit } = place();
  const first = output();
  expect(first.take(false)).toBe(false);
  expect(await first.streams()).toEqual(exit.streams);
  fs.writeFileSync(sources.stdout, "one\n");
  expect(first.take(false)).toBe(true);
  expect(first.take(false)).toBe(false);
  fs.appendFileSync(sources.stdout, "two\n");
  fs.writeFileSync(sources.stderr, "oh\n");
  const next = output();
  expect(next.take(false)).toBe(true);
  expect(next.take(true)).toBe(false);
  expect(text()).toBe("submitted\none\ntwo\n");
  expect(await next.streams()).toEqual({
    stdout: { observed: 18, kept: 18, dropped: 0, truncated: null, complete: true, sha256: sha256Hex("submitted\none\ntwo\n") },
    stderr: { observed: 3, kept: 3, dropped: 0, truncated: null, complete: true, sha256: sha256Hex("oh\n") },
  });
});

test("a character waits until all of it is there, or the run has ended", () => {
  const { output, sources, text, log } = place({ submitted: "" });
  const bytes = Buffer.from("a€");
  fs.writeFileSync(sources.stdout, bytes.subarray(0, 3));
  const one = output();
  expect(one.take(false)).toBe(true);
  expect(text()).toBe("a");
  expect(one.take(false)).toBe(false);
  fs.writeFileSync(sources.stdout, bytes);
  expect(one.take(false)).toBe(true);
  expect(text()).toBe("a€");
  fs.appendFileSync(sources.stdout, bytes.subarray(1, 3));
  expect(one.take(false)).toBe(false);
  expect(one.take(true)).toBe(true);
  expect(fs.statSync(log).size).toBe(6);
});

test.each([
  ["its stream's", { streamBytes: 15 }, "stream_quota", 15],
  ["its stream's, of which earlier attempts have used some", { streamBytes: 20, used: 5 }, "stream_quota", 15],
  ["the job's", { jobBytes: 13 }, "job_quota", 13],
] as const)("no more is kept than %s quota; what is dropped is counted", async (_whose, options, truncated, kept) => {
  const { output, sources, text } = place(options);
  fs.writeFileSync(sources.stdout, "0123456789");
  const one = output();
  expect(one.take(false)).toBe(true);
  fs.appendFileSync(sources.stdout, "abc");
  expect(one.take(true)).toBe(false);
  expect(text()).toBe(`submitted\n${"0123456789abc".slice(0, kept - 10)}`);
  expect((await one.streams()).stdout).toMatchObject({ observed: 23, kept, dropped: 23 - kept, truncated, complete: true });
});

test("a stream that was cut before keeps nothing more; all of it is counted", async () => {
  const { output, sources, text } = place({ own: { observed: 30, dropped: 20, truncated: "stream_quota" } });
  fs.writeFileSync(sources.stdout, "more");
  const one = output();
  expect(one.take(true)).toBe(false);
  expect(text()).toBe("submitted\n");
  expect((await one.streams()).stdout).toMatchObject({ observed: 34, kept: 10, dropped: 24, truncated: "stream_quota" });
});

test("what has taken the place of a file is not read, and nothing is written through a link", async () => {
  const { output, sources, log, directory, exit } = place();
  const secret = path.join(path.dirname(sources.stdout), "secret");
  fs.writeFileSync(secret, "of somebody");
  fs.symlinkSync(secret, sources.stdout);
  const one = output();
  expect(one.take(true)).toBe(false);
  expect(await one.streams()).toEqual(exit.streams);
  fs.rmSync(sources.stdout);
  fs.writeFileSync(sources.stdout, "x".repeat(20));
  fs.rmSync(log);
  fs.symlinkSync(secret, log);
  expect(one.take(true)).toBe(false);
  expect(fs.readFileSync(secret, "utf8")).toBe("of somebody");
  // A log that lacks what was written to it is damaged, and what is said of it stays.
  fs.rmSync(log);
  fs.writeFileSync(log, "sub");
  expect(one.take(true)).toBe(false);
  expect((await one.streams()).stdout).toEqual(exit.streams.stdout);
  fs.rmSync(directory, { recursive: true });
  expect(one.take(true)).toBe(false);
});

test("a part that could not be brought is not said to be complete", async () => {
  const { output, sources } = place();
  fs.writeFileSync(sources.stdout, "one\n");
  const one = output();
  one.take(false);
  fs.appendFileSync(sources.stdout, "late");
  expect((await one.streams()).stdout).toMatchObject({ observed: 14, kept: 14, dropped: 0, truncated: null, complete: false });
});
