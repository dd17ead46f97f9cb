import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";
import { sh, testAttempts } from "./attempts.ts";

const MiB = 1024 * 1024;
const attempt = testAttempts([EXECUTABLE]);

/** A member of /proc/PID/status in bytes (proc_pid_status(5)). */
function memory(pid: number, member: "VmRSS" | "VmHWM"): number {
  const match = new RegExp(`^${member}:\\s+(\\d+) kB$`, "m").exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match![1]) * 1024;
}

describe("the built executable as a shim", () => {
  test("runs a job, and lets one write 10 GB", async () => {
    const job = attempt(sh("echo start >&2; head -c 10000000000 /dev/zero; exit 3"), { quota: { stream_bytes: MiB } });
    const exit = await job.run();
    expect(exit.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
    expect(exit.streams.stdout).toMatchObject({ observed: 10_000_000_000, kept: MiB, dropped: 10_000_000_000 - MiB, complete: true });
    expect(fs.statSync(job.file("stdout.log")).size).toBe(MiB);
  });
});

describeWith("linux", "the shim's memory", () => {
  test("is at most 35 MB beside a quiet job", async () => {
    const job = attempt(sh("echo up; sleep 1000"));
    const shim = job.start();
    await job.output("up");
    const rss = await eventually(() => (memory(shim.pid, "VmRSS") <= 35 * MiB ? memory(shim.pid, "VmRSS") : null), { what: "35 MB" });
    expect(rss).toBeLessThanOrEqual(35 * MiB);
    expect(rss).toBeGreaterThan(0);
  });

  test("does not grow with the output", async () => {
    const job = attempt(sh("head -c 1000000000 /dev/zero; head -c 1000000000 /dev/zero >&2; touch done; sleep 1000"), {
      quota: { stream_bytes: 600 * MiB, job_bytes: 800 * MiB },
    });
    const shim = job.start();
    await eventually(() => fs.existsSync(`${job.workdir}/done`), { what: "2 GB of output" });
    expect(memory(shim.pid, "VmHWM")).toBeLessThanOrEqual(64 * MiB);
  });
});
