import { describe, expect, test } from "bun:test";
import path from "node:path";
import { eventually } from "../../runner/wait.ts";
import { MeetingDesk, TOKEN } from "../relay-desk.ts";
import { farLink } from "../ssh-desk.ts";

const FLOODS = path.join(import.meta.dir, "flooding-relay-host-process.ts");

interface WorkerShown {
  readonly workers: readonly { readonly met_at?: { readonly reason: string | null } | null }[];
}

describe("a relay-host that never stops talking", () => {
  test.each([
    // A worker that waits for `registered` takes nothing else.
    ["without the token", "-", "meeting_malformed"],
    ["with it", TOKEN, "meeting_flooded"],
  ])("%s: daemon and worker go on with everything else, and come to it ever more rarely", async (_, token, ends) => {
    const evil = Bun.spawn([process.execPath, FLOODS, token], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    try {
      const { value } = await evil.stdout.getReader().read();
      await using both = await MeetingDesk.start({ url: `tcp://127.0.0.1:${Number(Buffer.from(value!).toString())}` });
      await eventually(async () => (await farLink(both.desk)).detail?.startsWith("meeting_flooded") === true, {
        what: "a link that was given up",
      });
      await eventually(async () => (await both.cluster.json<WorkerShown>("worker", "status")).workers[0]?.met_at?.reason === ends, {
        what: "a worker that gave up",
      });
      const job = await both.cluster.submit("--wait", "--", "echo", "all the same");
      expect(await both.cluster.ok("job", "read-log", job)).toBe("all the same");
      const { exit, stderr } = await both.desk.run(["job", "list"]).then(({ code, ...rest }) => ({ exit: code, ...rest }));
      expect([exit === 0, stderr]).toEqual([false, expect.stringContaining("meeting_flooded")]);
      await both.desk.ok("disconnect", "far");
      await both.desk.ok("desktop", "stop");
    } finally {
      evil.kill();
      await evil.exited;
    }
  });
});
