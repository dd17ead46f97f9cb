import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { describeWith } from "../runner/components.ts";
import { Relay } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";

/** The library that faketime(1) preloads; its clock is read from a file, so that it can step while the process runs. */
function fakeTimeLibrary(): string {
  const found = [...new Bun.Glob("{lib,lib64}/*/faketime/libfaketime.so.1").scanSync({ cwd: "/usr" })];
  if (found.length === 0) throw new Error("libfaketime is not where Debian puts it");
  return path.join("/usr", found[0]!);
}

describeWith("faketime", "a wall clock that steps", () => {
  test("back by hours while jobs run, wait for a retry and time out: nothing is lost, delayed for hours or ended early", async () => {
    await using relay = new Relay();
    const clock = path.join(relay.directory, "clock");
    fs.writeFileSync(clock, "+0\n");
    const env = {
      LD_PRELOAD: fakeTimeLibrary(),
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    expect((await relay.run(["init"])).code).toBe(0);
    await relay.worker([], { env });
    const submit = (...args: string[]) => relay.json<{ job_id: string }>("job", "submit", "--cluster", "local", ...args);
    // None of them can end before the clock has stepped.
    const place = ["--workdir", relay.directory];
    const steady = await submit(...place, "--", "/bin/sh", "-c", "until [ -e stepped ]; do sleep 0.1; done; echo done");
    const retried = await submit("--retries", "9", ...place, "--", "/bin/sh", "-c", "test -e stepped && exit 0; touch tried; exit 1");
    await eventually(() => fs.existsSync(path.join(relay.directory, "tried")));
    const limited = await submit("--timeout", "8s", "--", "sleep", "600");

    fs.writeFileSync(clock, "-5h\n");
    fs.writeFileSync(path.join(relay.directory, "stepped"), "");
    const states = await Promise.all(
      [steady, retried, limited].map(async ({ job_id }) => {
        const { code } = await relay.run(["job", "wait", job_id, "--timeout-seconds", "120"]);
        const { job } = await relay.json<{ job: { state: string; outcome: { reason: string }; created_at: string; updated_at: string } }>(
          "job",
          "status",
          job_id,
        );
        return { code, state: job.state, reason: job.outcome?.reason, stepped: job.updated_at < job.created_at };
      }),
    );
    expect(states).toEqual([
      { code: 0, state: "succeeded", reason: "completed", stepped: true },
      { code: 0, state: "succeeded", reason: "completed", stepped: true },
      { code: 10, state: "failed", reason: "timeout", stepped: true },
    ]);
  });
});
