import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { describeWith } from "../../runner/components.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "a worker that was reached before", () => {
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  test("is known by its id: another one in its place is refused until it is set up from here", async () => {
    site.worker.start();
    await using relay = await site.desk();
    const pinned = async () => (await relay.json<{ worker_id: string | null }>("cluster", "show", "far")).worker_id;
    expect(await pinned()).toBeNull();
    await relay.ok("connect", "far");
    const first = await pinned();
    expect(first).toBe(fs.readFileSync(path.join(site.user.home, ".local/share/clio-relay/core/far/worker-id"), "utf8").trim());
    await relay.ok("disconnect", "far");
    await relay.ok("connect", "far");
    await relay.ok("disconnect", "far");

    site.worker.stop();
    fs.rmSync(path.join(site.user.home, ".local/share/clio-relay/core/far"), { recursive: true });
    site.worker.start();
    const other = await relay.run(["connect", "far"]);
    expect([other.code, other.stderr]).toEqual([5, expect.stringContaining("[link_bringup_failed]")]);
    expect(other.stderr).toContain(`not ${first}`);
    expect(other.stderr).toContain("clio-relay cluster bootstrap --cluster far");
    expect(await pinned()).toBe(first);
    expect(await farLink(relay)).toMatchObject({ state: "down" });

    site.worker.stop();
    await relay.ok("worker", "start");
    expect(await relay.ok("connect", "far")).toStartWith("far is up: ");
    expect(await pinned()).not.toBe(first);
  });
});
