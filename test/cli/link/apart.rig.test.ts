import { afterAll, beforeAll, expect, test } from "bun:test";
import net from "node:net";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "links are apart", () => {
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start();
    site.worker.start();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  test("one that hangs and one that is never answered hold up nobody else, nor the list of links; what waited goes on", async () => {
    const silent = net.createServer((socket) => socket.on("error", () => undefined));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    await using relay = await site.desk({
      more: ["Host black", "  HostName 127.0.0.1", `  Port ${(silent.address() as net.AddressInfo).port}`],
    });
    try {
      await relay.ok("cluster", "add", "--name", "black", "--ssh-host", "black");
      await relay.ok("worker", "start", "--cluster", "local");
      await relay.ok("connect", "far");
      site.signalSessions("STOP");
      const hung = relay.start(["job", "list", "--cluster", "far"]);
      const unanswered = relay.start(["connect", "black"]);
      const states = () => relay.json<{ links: { cluster: string; state: string }[] }>("link", "list");
      await eventually(async () => (await states()).links.some(({ cluster, state }) => cluster === "black" && state === "connecting"), {
        what: "the bring-up",
      });
      const waiting = relay.start(["job", "list", "--cluster", "black"]);
      expect((await relay.run(["job", "list", "--cluster", "local"])).code).toBe(0);
      const id = await relay.submit("--cluster", "local", "--wait", "--", "echo", "here");
      expect(await relay.ok("job", "read-log", id, "--cluster", "local")).toBe("here");
      expect((await states()).links.map(({ cluster }) => cluster).toSorted()).toEqual(["black", "far", "local"]);
      expect([hung.exitCode, unanswered.exitCode, waiting.exitCode]).toEqual([null, null, null]);
      // A daemon that is asked to stop would end both.
      const stop = await relay.run(["desktop", "stop"]);
      expect([stop.code, stop.stderr]).toEqual([4, expect.stringMatching(/ends the links to (?:far, black|black, far)/)]);
      site.signalSessions("CONT");
      expect(await hung.exited).toBe(0);
      await relay.ok("disconnect", "black");
      expect(await Promise.all([unanswered.exited, waiting.exited])).toEqual([5, 5]);
      expect((await farLink(relay)).state).toBe("up");
    } finally {
      site.signalSessions("CONT");
      silent.close();
    }
  });
});
