import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { FEW_THREADS } from "../../src/lib/system/few-threads.ts";
import { describeWith } from "../runner/components.ts";
import { Relay } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const USER = 54906;
const LIMIT = 100;

interface Status {
  readonly job: { readonly state: string; readonly attempts: number };
  readonly obstacle: string | null;
}

describeWith("root", "a user whose processes are at their limit", () => {
  test("loses no job: what cannot be started waits and says so, can be canceled, and runs once there is room", async () => {
    using directory = temporaryDirectory();
    fs.chownSync(directory.path, USER, USER);
    const asUser = ["setpriv", "--reuid", String(USER), "--regid", String(USER), "--clear-groups"];
    await using relay = new Relay({ directory: directory.path, under: asUser, env: FEW_THREADS });
    expect(await relay.run(["init"])).toMatchObject({ code: 0 });
    await relay.worker([], { under: ["prlimit", `--nproc=${LIMIT}`] });
    const submit = async (...argv: string[]): Promise<string> =>
      (await relay.json<{ job_id: string }>("job", "submit", "--cluster", "local", "--", ...argv)).job_id;
    const status = (id: string): Promise<Status> => relay.json<Status>("job", "status", id);

    const pipe = path.join(directory.path, "pipe");
    expect(Bun.spawnSync([...asUser, "mkfifo", pipe]).exitCode).toBe(0);
    const running = await submit("cat", pipe);
    await eventually(async () => (await status(running)).job.state === "running", { what: "the first job" });

    const others = `i=0; while [ $i -lt ${LIMIT} ]; do sleep 600 & i=$((i+1)); done; echo there; wait`;
    const filling = Bun.spawn([...asUser, "sh", "-c", others], { detached: true, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    try {
      await filling.stdout.getReader().read();
      const waiting = [await submit("echo", "one"), await submit("echo", "two")];
      const last = await submit("echo", "canceled");
      // At least one has no shim, or has one that has no process for its command.
      await eventually(
        async () => {
          const obstacles = await Promise.all(waiting.map(async (id) => (await status(id)).obstacle));
          return obstacles.some((obstacle) => obstacle?.includes("EAGAIN"));
        },
        { what: "the shortage" },
      );
      expect(await relay.run(["job", "cancel", last])).toMatchObject({ code: 0 });
      const canceled = await relay.run(["job", "wait", last, "--timeout-seconds", "100", "--json"]);
      expect(canceled.json()).toMatchObject({ state: "canceled" });
      for (const id of waiting) expect(["queued", "leased"]).toContain((await status(id)).job.state);

      process.kill(-filling.pid, "SIGKILL");
      for (const [at, id] of waiting.entries()) {
        expect(await relay.json("job", "wait", id, "--timeout-seconds", "100")).toMatchObject({ state: "succeeded", attempts: 1 });
        expect((await relay.bytes("job", "read-log", id, "--raw")).toString()).toBe(`${["one", "two"][at]}\n`);
      }
    } finally {
      if (filling.exitCode === null && filling.signalCode === null) process.kill(-filling.pid, "SIGKILL");
    }
    fs.writeFileSync(pipe, "whole");
    expect(await relay.json("job", "wait", running, "--timeout-seconds", "100")).toMatchObject({ state: "succeeded", attempts: 1 });
    expect((await relay.bytes("job", "read-log", running, "--raw")).toString()).toBe("whole");
    expect(await relay.json("queue", "audit", "--cluster", "local")).toMatchObject({ ok: true });
  });
});
