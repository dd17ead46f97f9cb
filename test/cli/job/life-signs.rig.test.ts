import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../../runner/wait.ts";
import { Collected } from "../collected.ts";
import { withWorker } from "../source-relay.ts";

test("followers say that the worker hangs, or the daemon, and go on when it does", async () => {
  await using relay = await withWorker();
  const gate = path.join(relay.directory, "gate");
  const id = await relay.submit("--", "sh", "-c", `echo one; while [ ! -e "${gate}" ]; do sleep 0.05; done; echo two`);
  const size = () => relay.json<{ logs: { size_bytes: number }[] }>("job", "status", id).then((s) => s.logs[0]!.size_bytes);
  await eventually(async () => (await size()) === 4);
  const followers = [
    ["job", "watch", id],
    ["job", "watch", "--json", id],
    ["job", "read-log", "-f", id],
    ["job", "read-log", "-f", "--json", id],
  ].map((args) => new Collected(relay.start(args)));
  await eventually(() => followers.every(({ stdout }) => stdout.includes("one")));
  for (const [pids, who] of [
    [relay.processes("worker run"), "the worker of local"],
    [relay.daemons(), "the desktop daemon"],
  ] as const) {
    const counted = (words: string) =>
      followers.every(({ stderr }) => stderr.split("\n").filter((line) => line.includes(words)).length === 1);
    const before = followers.map(({ stderr }) => stderr.split("it answers again").length);
    process.kill(pids[0]!, "SIGSTOP");
    try {
      await eventually(() => counted(`no sign of life from ${who} for `));
    } finally {
      process.kill(pids[0]!, "SIGCONT");
    }
    await eventually(() => followers.every(({ stderr }, at) => stderr.split("it answers again").length === before[at]! + 1));
  }
  fs.writeFileSync(gate, "");
  expect(await Promise.all(followers.map(({ exited }) => exited))).toEqual([0, 0, 0, 0]);
  expect(followers[2]!.stdout).toBe("one\ntwo\n");
  expect(followers[0]!.stdout).toContain("stdout | two\n");
});
