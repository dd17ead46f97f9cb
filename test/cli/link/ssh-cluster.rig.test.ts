import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import type { SourceRelay } from "../source-relay.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "a cluster behind a login node, as another user", () => {
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start();
    site.worker.start();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  const desk = (known?: string): Promise<SourceRelay> => site.desk(known === undefined ? {} : { known });

  test("connect, submit, watch, read what is left; every dial is in the ledger and in sshd's log", async () => {
    const before = site.sshd.connections();
    await using relay = await desk();
    const early = await relay.run(["job", "list"]);
    expect([early.code, early.stderr]).toEqual([5, expect.stringContaining("hint: clio-relay connect far")]);
    expect(await relay.ok("connect", "far")).toMatch(/^far is up: worker \S+, [\d.]+ ms$/);
    expect(await relay.ok("connect", "far")).toMatch(/^far is up: /);
    const id = await relay.submit("--output", "out/*", "--", "sh", "-c", "id -un; mkdir -p out; seq 400000 | tee out/numbers >&2");
    const numbers = Buffer.from(Array.from({ length: 400_000 }, (_, i) => `${i + 1}\n`).join(""));
    expect(await relay.ok("job", "watch", id)).toContain(site.user.name);
    expect(await relay.ok("job", "read-log", id)).toBe(site.user.name);
    for (const part of [[], ["--offset", "1000000"], ["--limit", "600000"]]) {
      const { stdout } = await relay.run(["job", "read-log", id, "--stream", "stderr", "--raw", ...part]);
      const [from, to] = [part[0] === "--offset" ? 1_000_000 : 0, part[0] === "--limit" ? 600_000 : numbers.length];
      expect([part, stdout === numbers.toString("latin1", from, to)]).toEqual([part, true]);
    }
    const { artifacts } = await relay.json<{ artifacts: { artifact_id: string; size_bytes: number }[] }>("job", "list-artifacts", id);
    const kept = artifacts.find(({ size_bytes }) => size_bytes === numbers.length)!;
    await relay.ok("job", "read-artifact", kept.artifact_id, "-o", "numbers");
    expect(fs.readFileSync(path.join(relay.directory, "numbers")).equals(numbers)).toBe(true);
    expect(await farLink(relay)).toMatchObject({
      state: "up",
      ssh_connections_since_bring_up: 0,
      ledger: [{ outcome: "open", requested_by: "clio-relay connect far", target: `${site.user.name}@127.0.0.1:${site.sshd.port}` }],
    });
    expect((await farLink(relay)).bytes_in).toBeGreaterThan(2 * numbers.length);
    expect(await relay.ok("disconnect", "far")).toBe("far is down");
    expect((await relay.run(["job", "list"])).code).toBe(5);
    expect(site.sshd.connections() - before).toBe(1);
  });

  test("a link that is cut needs a person, the job goes on, and whoever watches goes on from where it was", async () => {
    const before = site.sshd.connections();
    await using relay = await desk();
    await relay.ok("connect", "far");
    const gate = path.join(site.user.home, `gate-${crypto.randomUUID()}`);
    const id = await relay.submit("--", "sh", "-c", `echo one; while [ ! -e ${gate} ]; do sleep 0.1; done; echo two`);
    const watch = relay.start(["job", "watch", id]);
    let shown = "";
    let said = "";
    const reading = Promise.all([
      (async () => {
        for await (const chunk of watch.stdout) shown += Buffer.from(chunk).toString();
      })(),
      (async () => {
        for await (const chunk of watch.stderr) said += Buffer.from(chunk).toString();
      })(),
    ]);
    await eventually(() => shown.includes("one"), { what: "the first line" });
    site.signalSessions("KILL");
    await eventually(async () => (await farLink(relay)).state === "authorization_required", { what: "the end of the link" });
    const refused = await relay.run(["job", "status", id]);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("hint: clio-relay connect far")]);
    await eventually(() => said.includes("clio-relay connect far"), { what: "the notice of the watch" });
    expect(watch.exitCode).toBeNull();
    fs.writeFileSync(gate, "");
    await relay.ok("connect", "far");
    expect(await watch.exited).toBe(0);
    await reading;
    expect(shown.match(/one|two/g)).toEqual(["one", "two"]);
    expect((await farLink(relay)).ledger).toHaveLength(2);
    expect(site.sshd.connections() - before).toBe(2);
  });

  test("a question that nobody can answer ends with 4, and is not dialed again by what follows", async () => {
    const before = site.sshd.connections();
    await using relay = await desk("");
    const asked = await relay.run(["connect", "far", "--no-input"]);
    expect([asked.code, asked.stderr]).toEqual([4, expect.stringContaining("[authorization_required]")]);
    expect((await farLink(relay)).state).toBe("authorization_required");
    expect((await relay.run(["job", "list"])).code).toBe(4);
    expect((await farLink(relay)).ledger).toMatchObject([{ outcome: "cancelled", reason: "authorization_required" }]);
    expect(site.sshd.connections() - before).toBe(1);
  });

  test("a session that is cut takes the link with it, also where sshd gives it away to the user", async () => {
    await using pam = await FarSite.start({ config: ["UsePAM yes"] });
    pam.worker.start();
    await using relay = await pam.desk();
    await relay.ok("connect", "far");
    pam.sshd.cut();
    await eventually(async () => (await farLink(relay)).state === "authorization_required", {
      what: "the end of the link",
    });
    const host = await relay.run(["cluster", "probe", "far", "--no-input"]);
    expect([host.code, host.stderr]).toEqual([0, ""]);
  });

  test("without a worker the connection is kept, and the next connect asks nothing", async () => {
    const before = site.sshd.connections();
    await using relay = await desk();
    site.worker.stop();
    const down = await relay.run(["connect", "far"]);
    expect([down.code, down.stderr]).toEqual([5, expect.stringContaining("[worker_not_running]")]);
    expect(await farLink(relay)).toMatchObject({ state: "down" });
    site.worker.start();
    await relay.ok("connect", "far");
    site.worker.stop();
    const gone = await relay.run(["job", "list"]);
    expect([gone.code, gone.stderr]).toEqual([5, expect.stringContaining("[worker_not_running]")]);
    // A link that is up is no worker that is there.
    const found = await relay.run(["connect", "far"]);
    expect([found.code, found.stderr]).toEqual([5, expect.stringMatching(/no worker is running for far\b.* \[worker_not_running\]/)]);
    expect(await farLink(relay)).toMatchObject({ state: "up", detail: "no worker is running for far" });
    // Whatever lies here under its name is not its queue.
    for (const verb of ["audit", "repair"]) {
      const checked = await relay.run(["queue", verb, "--yes"]);
      expect([checked.code, checked.stderr]).toEqual([5, expect.stringContaining("[worker_not_running]")]);
    }
    site.worker.start();
    expect(await relay.ok("connect", "far")).toMatch(/^far is up: worker /);
    expect((await relay.run(["job", "list"])).code).toBe(0);
    expect((await farLink(relay)).detail).toBeNull();
    // The next worker may have its socket elsewhere, which the host knows.
    site.worker.stop();
    site.worker.startElsewhere();
    expect(await relay.ok("connect", "far")).toMatch(/^far is up: worker /);
    expect((await relay.run(["job", "list"])).code).toBe(0);
    site.worker.stop();
    site.worker.start();
    await relay.ok("connect", "far");
    expect(site.sshd.connections() - before).toBe(1);
  });

  test("the daemon is not stopped under a link unless that is said, and the next one knows that there was a link", async () => {
    await using relay = await desk();
    await relay.ok("connect", "far");
    const refused = await relay.run(["desktop", "stop"]);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("this ends the link to far")]);
    expect((await farLink(relay)).state).toBe("up");
    const [daemon] = relay.daemons();
    await relay.kill(daemon!);
    expect((await relay.run(["job", "list"])).code).toBe(4);
    expect(await farLink(relay)).toMatchObject({
      state: "authorization_required",
      ledger: [{ outcome: "open", reason: expect.any(String) }],
    });
    await relay.ok("connect", "far");
    await relay.ok("desktop", "stop", "--yes");
    expect(await relay.ok("desktop", "stop")).toBe("no daemon is running");
  });

  test("a cluster that is forgotten, or is on this machine from now on, lets go of its connection", async () => {
    await using relay = await desk();
    const sessions = (): number =>
      spawnSync("pgrep", ["-f", `^sshd: ${site.user.name}`], { encoding: "utf8" }).stdout.split("\n").length - 1;
    const over = () => eventually(() => sessions() === 0, { what: "the end of the session" });
    await over();
    await relay.ok("connect", "far");
    expect(sessions()).toBeGreaterThan(0);
    await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "localhost");
    await over();
    await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "login");
    await relay.ok("connect", "far");
    const removed = await relay.run(["cluster", "remove", "far", "--yes"]);
    expect(removed.stderr).toContain("clio-relay cluster uninstall far removes both");
    await over();
  });
});
