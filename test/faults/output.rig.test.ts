import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { Event } from "../../src/domain/event.ts";
import type { JobStatus } from "../../src/domain/views.ts";
import { historyFaults } from "../roles/worker/harness.ts";
import { type Relay, startRelay } from "../runner/relay.ts";

const MiB = 1024 * 1024;

/** Run a job that writes with Bun what the expression gives, and return its id when it has succeeded. */
async function writes(relay: Relay, program: string): Promise<string> {
  const { code, stdout, stderr } = await relay.run(["job", "submit", "--wait", "--", process.execPath, "-e", program]);
  expect([code, stderr]).toEqual([0, "succeeded: exited with code 0\n"]);
  return stdout.trim();
}

/** Print bytes of an expression to standard output, as a program of its own. */
const printing = (expression: string): string => `await Bun.write(Bun.stdout, ${expression})`;

async function history(relay: Relay, jobId: string): Promise<Event[]> {
  const { stdout } = await relay.run(["job", "watch", jobId, "--json"]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);
}

describe("output of every kind, through worker, desktop and command", () => {
  const kinds: Record<string, { program: string; bytes: Buffer }> = {
    NULs: { program: printing('"a\\0b\\0\\0\\n".repeat(5000)'), bytes: Buffer.from("a\0b\0\0\n".repeat(5_000)) },
    "bytes that are not UTF-8": {
      program: printing("Buffer.from(Array.from({ length: 70000 }, (_, i) => (i * 7) % 256))"),
      bytes: Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256)),
    },
    "a progress bar of carriage returns": {
      program: printing('Array.from({ length: 500 }, (_, i) => `\\r${"█".repeat(i % 40)} ${i}`).join("") + "\\n"'),
      bytes: Buffer.from(`${Array.from({ length: 500 }, (_, i) => `\r${"█".repeat(i % 40)} ${i}`).join("")}\n`),
    },
    "control sequences of terminals": {
      program: printing('"\\x1b[31mred\\x1b]0;title\\x07\\x1b[2J"'),
      bytes: Buffer.from("\x1b[31mred\x1b]0;title\x07\x1b[2J"),
    },
  };

  test("is given back byte for byte", async () => {
    await using relay = await startRelay();
    for (const [kind, { program, bytes }] of Object.entries(kinds)) {
      const jobId = await writes(relay, program);
      const read = await relay.bytes("job", "read-log", jobId, "--raw");
      expect([kind, read.length, read.equals(bytes)]).toEqual([kind, bytes.length, true]);
      const followed = await relay.bytes("job", "read-log", jobId, "--raw", "-f");
      expect([kind, followed.equals(bytes)]).toEqual([kind, true]);
      const middle = await relay.bytes("job", "read-log", jobId, "--raw", "--offset", "7", "--limit", "11");
      expect([kind, middle.equals(bytes.subarray(7, 18))]).toEqual([kind, true]);
      expect(historyFaults(await history(relay, jobId))).toEqual([]);
    }
  });

  test("a line of 100 MB comes back whole", async () => {
    await using relay = await startRelay({ env: { CLIO_RELAY_LOG_STREAM_MAX_BYTES: "200MiB", CLIO_RELAY_LOG_JOB_MAX_BYTES: "200MiB" } });
    const jobId = await writes(relay, 'for (let i = 0; i < 100; i++) require("fs").writeSync(1, String(i % 10).repeat(1e6))');
    const wanted = createHash("sha256");
    for (let i = 0; i < 100; i++) wanted.update(String(i % 10).repeat(1e6));
    const read = await relay.bytes("job", "read-log", jobId, "--raw");
    expect(read.length).toBe(100_000_000);
    expect(createHash("sha256").update(read).digest("hex")).toBe(wanted.digest("hex"));
    const events = await history(relay, jobId);
    expect(historyFaults(events)).toEqual([]);
    expect(events.filter(({ event_type }) => event_type === "stdout.delta").at(-1)!.payload).toMatchObject({ next_offset: 100_000_000 });
  });

  test("10 GB are cut at the quota and counted to the end, and the job is not held up", async () => {
    await using relay = await startRelay();
    const total = 10 * 1024 * MiB;
    const { code, stdout } = await relay.run(["job", "submit", "--wait", "--", "head", "-c", String(total), "/dev/zero"]);
    expect(code).toBe(0);
    const { logs } = await relay.json<JobStatus>("job", "status", stdout.trim());
    expect(logs.find(({ stream }) => stream === "stdout")).toMatchObject({
      size_bytes: 64 * MiB,
      capture: { observed: total, kept: 64 * MiB, dropped: total - 64 * MiB, truncated: "stream_quota", complete: true },
    });
    const events = await history(relay, stdout.trim());
    expect(historyFaults(events)).toEqual([]);
    expect(events.filter(({ event_type }) => event_type === "stdout.truncated").length).toBe(1);
  });

  test("a job that closes its output and goes on is followed to its end", async () => {
    await using relay = await startRelay();
    const { stdout, code } = await relay.run(["job", "submit", "--wait", "--", "sh", "-c", "echo said; exec >&- 2>&-; sleep 0.5; exit 7"]);
    expect(code).toBe(10);
    expect(String(await relay.bytes("job", "read-log", stdout.trim(), "--raw", "-f"))).toBe("said\n");
    const { job } = await relay.json<JobStatus>("job", "status", stdout.trim());
    expect(job.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 7 });
  });
});
