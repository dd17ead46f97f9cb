import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { FarSite } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "a login node whose users have no service manager", () => {
  test("and may have no crontab: the whole line that does without is named, which does, and the entry is as before until then", async () => {
    using programs = temporaryDirectory();
    // A site that lets nobody have a crontab (crontab(1), cron.allow).
    fs.writeFileSync(
      path.join(programs.path, "crontab"),
      '#!/bin/sh\necho "you are not allowed to use this program (crontab)" >&2\nexit 1\n',
    );
    for (const place of [programs.path, path.join(programs.path, "crontab")]) fs.chmodSync(place, 0o755);
    await using site = await FarSite.start({ config: [`SetEnv PATH=${programs.path}:/usr/bin:/bin`] });
    await using relay = await site.desk();
    // As bootstrap leaves it.
    userFile(site.user, ".local/share/clio-relay/bootstrap/journal.jsonl", "");
    const capacity = async () =>
      (await relay.json<{ worker_capacity: { concurrency: number } }>("cluster", "show", "far")).worker_capacity.concurrency;
    const before = await capacity();
    const options = ["--concurrency", "5", "--kind-concurrency", "remote_agent=2"];
    const line = `clio-relay cluster install-endpoint-service far ${options.join(" ")} --launcher setsid`;
    for (const [launcher, code, reason] of [
      ["systemd", 1, "service_failed"],
      ["cron", 1, "service_failed"],
    ] as const) {
      const refused = await relay.run(["cluster", "install-endpoint-service", "far", ...options, "--launcher", launcher, "--no-input"]);
      expect([launcher, refused.code, refused.stderr]).toEqual([launcher, code, expect.stringContaining(`[${reason}]\nhint: ${line}\n`)]);
      expect(await capacity()).toBe(before);
    }
    expect(await relay.json(...line.split(" ").slice(1))).toMatchObject({ status: { state: "ready", launcher: "setsid" } });
    expect(await capacity()).toBe(5);
    await relay.ok("cluster", "remove-endpoint-service", "far");
  }, 120_000);
});
