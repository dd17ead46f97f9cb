import { afterAll, beforeAll, expect, test } from "bun:test";
import { EXIT } from "../../../src/domain/errors.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { eventually } from "../../runner/wait.ts";
import { initialized, type SourceRelay } from "../source-relay.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

const workerOf = async (relay: SourceRelay): Promise<number> => {
  const { workers } = await relay.json<{ workers: { process: { pid: number } }[] }>("worker", "status");
  return workers[0]!.process.pid;
};

/** A job that runs until it is let go. */
async function runningJob(relay: SourceRelay): Promise<string> {
  const id = await relay.submit("--", "sh", "-c", "echo begun; until [ -e go ]; do sleep 0.1; done; echo ended");
  await eventually(async () => (await relay.run(["job", "read-log", id])).stdout.includes("begun"), { what: "the job's first line" });
  return id;
}

test("a worker of this machine that was stopped by a signal is ended by force, where that is said, and its job goes on", async () => {
  await using relay = await initialized();
  await relay.ok("worker", "start");
  const id = await runningJob(relay);
  const hung = await workerOf(relay);
  process.kill(hung, "SIGSTOP");
  const asked = await relay.run(["worker", "stop", "--timeout", "0.3"]);
  expect([asked.code, asked.stderr]).toEqual([
    EXIT.notFinished,
    expect.stringContaining("hint: clio-relay worker stop --kill --cluster local"),
  ]);
  expect(await relay.json("worker", "stop", "--kill", "--timeout", "0.3")).toMatchObject({ state: "stopped", pid: hung });
  await relay.ok("worker", "start");
  expect(await workerOf(relay)).not.toBe(hung);
  await relay.ok("job", "cancel", id);
  expect(await relay.json("job", "attempts", id)).toMatchObject({ total: 1 });
});

describeWith(["sshd", "ssh"], "a worker of a cluster elsewhere that hangs", () => {
  let site: FarSite;
  beforeAll(async () => {
    site = await FarSite.start();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  test("costs no connection: the one that is there stays for what ends it by force, together with what keeps it running", async () => {
    await using relay = await site.desk();
    await relay.ok("cluster", "bootstrap", "far", "--artifact", EXECUTABLE, "--no-input");
    await relay.ok("cluster", "install-endpoint-service", "far", "--launcher", "setsid");
    await relay.ok("connect", "far");
    const hung = await workerOf(relay);
    await relay.ok("disconnect", "far");
    const before = site.sshd.connections();
    process.kill(hung, "SIGSTOP");
    const refused = await relay.run(["connect", "far"]);
    expect([refused.code, refused.stderr]).toEqual([EXIT.linkDown, expect.stringContaining("worker stop --kill --cluster far")]);
    expect(await farLink(relay)).toMatchObject({ state: "down", detail: expect.stringContaining("does not answer") });
    const { stopped, pid } = await relay.json<{ stopped: string[]; pid: number | null }>("worker", "stop", "--kill", "--cluster", "far");
    expect([stopped.length, pid === hung]).toEqual([1, true]);
    expect(await relay.json("worker", "start", "--cluster", "far")).toMatchObject({ state: "started", supervised_by: "setsid" });
    await relay.ok("connect", "far");
    expect(site.sshd.connections() - before).toBe(1);
    await relay.ok("cluster", "remove-endpoint-service", "far");
  });
});
