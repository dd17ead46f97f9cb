import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { RemoteWorker } from "../rigs/remote-worker.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../rigs/sshd.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { farLink, sshDesk } from "./ssh-desk.ts";

const TIMEOUT = 120_000;

describeWith(["sshd", "ssh"], "a worker that was reached before", () => {
  const keys = temporaryDirectory();
  let user: RigUser;
  let key: string;
  let sshd: Sshd;

  beforeAll(async () => {
    user = makeUser();
    key = makeKey(keys.path);
    authorize(user, `${key}.pub`);
    sshd = await startSshd();
  }, TIMEOUT);
  afterAll(async () => {
    await sshd[Symbol.asyncDispose]();
    removeUser(user);
    keys[Symbol.dispose]();
  });

  test(
    "is known by its id: another one in its place is refused until it is set up from here",
    async () => {
      const worker = new RemoteWorker(user, "far");
      worker.start();
      await using relay = await sshDesk({ directory: keys.path, sshd, user, key });
      const pinned = async () => (await relay.json<{ worker_id: string | null }>("cluster", "show", "far")).worker_id;
      expect(await pinned()).toBeNull();
      await relay.ok("connect", "far");
      const first = await pinned();
      expect(first).toBe(fs.readFileSync(path.join(user.home, ".local/share/clio-relay/core/far/worker-id"), "utf8").trim());
      await relay.ok("disconnect", "far");
      await relay.ok("connect", "far");
      await relay.ok("disconnect", "far");

      worker.stop();
      fs.rmSync(path.join(user.home, ".local/share/clio-relay/core/far"), { recursive: true });
      worker.start();
      const other = await relay.run(["connect", "far"]);
      expect([other.code, other.stderr]).toEqual([5, expect.stringContaining("[link_bringup_failed]")]);
      expect(other.stderr).toContain(`not ${first}`);
      expect(other.stderr).toContain("clio-relay cluster bootstrap --cluster far");
      expect(await pinned()).toBe(first);
      expect(await farLink(relay)).toMatchObject({ state: "down" });

      worker.stop();
      await relay.ok("worker", "start");
      expect(await relay.ok("connect", "far")).toStartWith("far is up: ");
      expect(await pinned()).not.toBe(first);
    },
    TIMEOUT,
  );
});
