import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import { readTruncation } from "../../src/execution/attempt-dir.ts";
import { bash, sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts();
const impatient = testAttempts([process.execPath, `${import.meta.dir}/impatient-shim-entry.ts`]);
const sha256 = (data: string | Uint8Array): string => new Bun.CryptoHasher("sha256").update(data).digest("hex");
const MiB = 1024 * 1024;

/** Have `cat` write exactly these bytes. */
function writing(bytes: Uint8Array, quota = {}): ReturnType<typeof attempt> {
  const job = attempt(["cat", "data"], { quota });
  fs.writeFileSync(`${job.workdir}/data`, bytes);
  return job;
}

describe("output is recorded byte for byte", () => {
  const everyByte = Uint8Array.from({ length: 65_536 }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
  const cases: [string, Uint8Array][] = [
    ["every byte there is, NUL and invalid UTF-8 included", everyByte],
    ["carriage returns of a progress bar", Buffer.from("10%\r20%\r\u001b[2K30%\r100%\n")],
    ["text without a newline at its end", Buffer.from("no newline")],
    ["a begun UTF-8 sequence at its end", Buffer.from([0x61, 0xe2, 0x82])],
    ["nothing", new Uint8Array(0)],
  ];
  for (const [title, bytes] of cases) {
    test(title, async () => {
      const job = writing(bytes);
      const { stdout } = (await job.run()).streams;
      expect(job.bytes("stdout.log").equals(bytes)).toBe(true);
      expect(stdout).toEqual({
        observed: bytes.length,
        kept: bytes.length,
        dropped: 0,
        truncated: null,
        complete: true,
        sha256: sha256(bytes),
      });
    });
  }

  test("a line of 100 MB", async () => {
    const job = attempt(sh("head -c 100000000 /dev/zero | tr '\\0' x; echo"), { quota: { stream_bytes: 200 * MiB, job_bytes: 200 * MiB } });
    const { stdout } = (await job.run()).streams;
    expect(stdout).toMatchObject({ observed: 100_000_001, kept: 100_000_001, dropped: 0, truncated: null });
    expect(fs.statSync(job.file("stdout.log")).size).toBe(100_000_001);
    const hash = new Bun.CryptoHasher("sha256");
    for (let i = 0; i < 100; i++) hash.update(Buffer.alloc(1_000_000, "x"));
    expect(stdout.sha256).toBe(hash.update("\n").digest("hex"));
  });

  test("while the job runs, not at its end", async () => {
    const job = attempt(sh("printf 'first '; read line < gate; echo $line"));
    expect(Bun.spawnSync(["mkfifo", `${job.workdir}/gate`]).exitCode).toBe(0);
    job.start();
    await job.output("first ");
    fs.writeFileSync(`${job.workdir}/gate`, "second\n");
    expect((await job.exit()).outcome.reason).toBe("completed");
    expect(job.text("stdout.log")).toBe("first second\n");
  });

  test("of a job that closes both streams and goes on", async () => {
    const job = attempt(sh("echo before; echo problem >&2; exec >&- 2>&-; sleep 0.2; touch done"));
    const exit = await job.run();
    expect(exit.outcome.reason).toBe("completed");
    expect(fs.existsSync(`${job.workdir}/done`)).toBe(true);
    expect(job.text("stdout.log")).toBe("before\n");
    expect(exit.streams.stderr).toMatchObject({ kept: 8, complete: true });
  });

  test("of a process that still empties its pipe when the first one has ended", async () => {
    const job = attempt(bash("exec > >(tee copy; sleep 0.3; echo last) 2>&1; for i in $(seq 2000); do echo line $i; done"));
    const exit = await job.run();
    const lines = Array.from({ length: 2000 }, (_, i) => `line ${i + 1}\n`).join("");
    expect(job.text("stdout.log")).toBe(`${lines}last\n`);
    expect(fs.readFileSync(`${job.workdir}/copy`, "utf8")).toBe(lines);
    expect(exit).toMatchObject({ leftover: 0, outcome: { reason: "completed" } });
  });
});

describe("the quota", () => {
  test("cuts a stream, counts the rest, and lets the job go on to its end", async () => {
    const bytes = Buffer.from("0123456789".repeat(30_000));
    const job = attempt(sh("cat data; touch done; exit 5"), { quota: { stream_bytes: 100_003 } });
    fs.writeFileSync(`${job.workdir}/data`, bytes);
    const exit = await job.run();
    expect(exit.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 5 });
    expect(fs.existsSync(`${job.workdir}/done`)).toBe(true);
    const kept = bytes.subarray(0, 100_003);
    expect(job.bytes("stdout.log").equals(kept)).toBe(true);
    expect(exit.streams.stdout).toEqual({
      observed: 300_000,
      kept: 100_003,
      dropped: 199_997,
      truncated: "stream_quota",
      complete: true,
      sha256: sha256(kept),
    });
    expect(exit.streams.stderr.truncated).toBeNull();
    const record = readTruncation(job.directory, "stdout")!;
    expect(record.stream).toBe("stdout");
    expect(record.capture).toMatchObject({ kept: 100_003, truncated: "stream_quota" });
    expect(record.capture.dropped).toBeGreaterThan(0);
    expect(record.capture.observed).toBe(record.capture.kept + record.capture.dropped);
    expect(readTruncation(job.directory, "stderr")).toBeNull();
  });

  test("is not touched by output of exactly its size", async () => {
    const job = writing(Buffer.from("é".repeat(5_000)), { stream_bytes: 10_000 });
    expect((await job.run()).streams.stdout).toMatchObject({ kept: 10_000, dropped: 0, truncated: null });
    expect(readTruncation(job.directory, "stdout")).toBeNull();
  });

  for (const [text, quota, kept] of [
    ["aé", 2, 1],
    ["a€b", 3, 1],
    ["a€b", 4, 4],
    ["ab😀", 5, 2],
    ["ab😀", 6, 6],
    ["é", 0, 0],
  ] as const) {
    test(`of ${quota} bytes keeps ${kept} of ${JSON.stringify(text)}`, async () => {
      const job = writing(Buffer.from(text), { stream_bytes: quota });
      const { stdout } = (await job.run()).streams;
      expect(stdout).toMatchObject({ observed: Buffer.byteLength(text), kept, dropped: Buffer.byteLength(text) - kept });
      expect(job.bytes("stdout.log").equals(Buffer.from(text).subarray(0, kept))).toBe(true);
    });
  }

  test("never cuts a sequence that came in two pieces", async () => {
    const job = attempt(sh("printf 'a\\342'; sleep 0.2; printf '\\202'; sleep 0.2; printf '\\254b'"), { quota: { stream_bytes: 3 } });
    const { stdout } = (await job.run()).streams;
    expect(job.text("stdout.log")).toBe("a");
    expect(stdout).toMatchObject({ observed: 5, kept: 1, dropped: 4, truncated: "stream_quota" });
  });

  test("keeps a begun sequence at the end of output that fits", async () => {
    const job = attempt(["printf", "a\\342\\202"], { quota: { stream_bytes: 3 } });
    expect((await job.run()).streams.stdout).toMatchObject({ observed: 3, kept: 3, dropped: 0, truncated: null });
    expect(job.bytes("stdout.log")).toEqual(Buffer.from([0x61, 0xe2, 0x82]));
  });

  test("of the job is shared by its streams", async () => {
    const kept = '"$(dirname "$CLIO_RELAY_EVENTS")/stdout.log"';
    const job = attempt(sh(`printf 1234567890; until [ -s ${kept} ]; do sleep 0.05; done; printf abcdefghij >&2`), {
      quota: { stream_bytes: 100, job_bytes: 14 },
    });
    const { stdout, stderr } = (await job.run()).streams;
    expect(stdout).toMatchObject({ kept: 10, truncated: null });
    expect(stderr).toMatchObject({ kept: 4, dropped: 6, truncated: "job_quota" });
    expect(job.text("stderr.log")).toBe("abcd");
  });

  test("is less what earlier attempts have kept", async () => {
    const job = attempt(sh("printf 1234567890; printf abcdefghij >&2"), {
      quota: { stream_bytes: 10, job_bytes: 100, used: { stdout: 7, stderr: 12 } },
    });
    const { stdout, stderr } = (await job.run()).streams;
    expect(stdout).toMatchObject({ kept: 3, dropped: 7, truncated: "stream_quota" });
    expect(stderr).toMatchObject({ kept: 0, dropped: 10, truncated: "stream_quota" });
  });

  test("lets a job write a thousand times as much", async () => {
    const job = attempt(["head", "-c", "1000000000", "/dev/zero"], { quota: { stream_bytes: 1 * MiB } });
    const exit = await job.run();
    expect(exit.outcome.reason).toBe("completed");
    expect(exit.streams.stdout).toMatchObject({ observed: 1_000_000_000, kept: MiB, dropped: 1_000_000_000 - MiB, complete: true });
    expect(fs.statSync(job.file("stdout.log")).size).toBe(MiB);
  });
});

test("a pipe that somebody else holds open does not hold up the end", async () => {
  const job = attempt(sh("echo $$ > pid; read line < gate"));
  expect(Bun.spawnSync(["mkfifo", `${job.workdir}/gate`]).exitCode).toBe(0);
  job.start();
  const { process: first } = await job.started();
  // Opened through /proc by a process that is none of the job's.
  const fd = fs.openSync(`/proc/${first.pid}/fd/1`, "w");
  try {
    fs.writeSync(fd, "from outside\n");
    fs.writeFileSync(`${job.workdir}/gate`, "go\n");
    const exit = await job.exit();
    expect(exit.outcome.reason).toBe("completed");
    expect(exit.streams.stdout).toMatchObject({ kept: 13, complete: false });
    expect(exit.streams.stderr.complete).toBe(true);
    expect(job.text("shim.log")).toContain("held open");
  } finally {
    fs.closeSync(fd);
  }
});

test("nor does somebody else who writes to it all the time, and what is said of the log is what is in it", async () => {
  const job = impatient(sh("echo mine; read line < gate"));
  expect(Bun.spawnSync(["mkfifo", `${job.workdir}/gate`]).exitCode).toBe(0);
  job.start();
  const { process: first } = await job.started();
  await job.output("mine\n");
  const fd = fs.openSync(`/proc/${first.pid}/fd/1`, "w");
  const outsider = Bun.spawn(["sh", "-c", "while :; do echo theirs; done"], { stdin: "ignore", stdout: fd, stderr: "ignore" });
  fs.closeSync(fd);
  try {
    await job.output("theirs");
    fs.writeFileSync(`${job.workdir}/gate`, "go\n");
    const exit = await job.exit();
    expect(exit.outcome).toMatchObject({ reason: "completed", exit_code: 0 });
    const { observed, kept, complete, sha256: digest } = exit.streams.stdout;
    expect(complete).toBe(false);
    expect(exit.streams.stderr.complete).toBe(true);
    const log = job.bytes("stdout.log");
    expect([kept, observed, digest]).toEqual([log.length, log.length, sha256(log)]);
    expect(log.subarray(0, 5).toString()).toBe("mine\n");
    expect(job.text("shim.log")).toContain("written to by a process that is not the job's");
  } finally {
    outsider.kill("SIGKILL");
    await outsider.exited;
  }
});
