import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import type { SourceRelay } from "../source-relay.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "a host on which something does not end", () => {
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start();
    site.worker.start();
  });
  afterEach(() => {
    site.signalSessions("CONT");
    userFile(site.user, ".bashrc", "");
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  /** A command that has been let in and waits for the host, given up with Ctrl-C. */
  async function givenUp(relay: SourceRelay, args: readonly string[], stuck: () => void = () => undefined): Promise<void> {
    const child = relay.start([...args]);
    await eventually(async () => (await farLink(relay)).ledger.at(-1)?.outcome === "open", { what: "the connection" });
    stuck();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
  }

  for (const profile of ["exec >&- 2>&-; sleep 3600", "exec dash"]) {
    test(`a profile with \`${profile}\` holds nobody who gives up, and nothing afterwards`, async () => {
      await using relay = await site.desk();
      userFile(site.user, ".bashrc", `${profile}\n`);
      await givenUp(relay, ["connect", "far"]);
      expect((await farLink(relay)).state).toBe("down");
      const asked = relay.start(["connect", "far"]);
      await eventually(async () => (await farLink(relay)).state === "connecting", { what: "the bring-up" });
      expect(await relay.ok("disconnect", "far")).toBe("far is down");
      expect(await asked.exited).toBe(5);
      userFile(site.user, ".bashrc", "");
      expect(await relay.ok("connect", "far")).toMatch(/^far is up: /);
      await relay.ok("desktop", "stop", "--yes");
    });
  }

  test("a connection that answers nothing any more is not used again, and its run is not joined", async () => {
    const before = site.sshd.connections();
    await using relay = await site.desk();
    userFile(site.user, ".bashrc", "sleep 3600\n");
    await givenUp(relay, ["connect", "far"], () => site.signalSessions("STOP"));
    userFile(site.user, ".bashrc", "");
    const again = await relay.run(["connect", "far"]);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("far is up")]);
    expect(again.stderr).not.toContain("does so already");
    expect(site.sshd.connections() - before).toBe(2);
  });
});
