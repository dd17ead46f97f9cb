import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { FarSite, farLink } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "a site that forwards no sockets", () => {
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start({ config: ["AllowStreamLocalForwarding no", "AllowTcpForwarding no", "MaxSessions 1"] });
    // What a chatty profile prints is not the bridge's.
    userFile(site.user, ".bashrc", "echo Welcome to the cluster; echo clio-relay-bridge 1 00; printf 'no end of line'\n", 0o644);
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  test("gets the worker's own session over a bridge, on the same connection; who has no keys of bootstrap is told so", async () => {
    await using relay = await site.desk();
    site.worker.start();
    const early = await relay.run(["connect", "far"]);
    expect([early.code, early.stderr]).toEqual([5, expect.stringContaining("hint: clio-relay cluster bootstrap --cluster far")]);
    site.worker.stop();
    // Keys are exchanged whenever a worker is configured from here.
    await relay.ok("worker", "start");
    expect(await relay.ok("connect", "far")).toStartWith("far is up: ");
    const id = await relay.submit("--output", "out/*", "--", "sh", "-c", "id -un; mkdir -p out; head -c 3000000 /dev/zero > out/zeros");
    expect(await relay.ok("job", "watch", id)).toContain(site.user.name);
    const { artifacts } = await relay.json<{ artifacts: { artifact_id: string; size_bytes: number }[] }>("job", "list-artifacts", id);
    const zeros = artifacts.find(({ size_bytes }) => size_bytes === 3_000_000)!;
    await relay.ok("job", "read-artifact", zeros.artifact_id, "-o", "zeros");
    expect(fs.readFileSync(path.join(relay.directory, "zeros")).equals(Buffer.alloc(3_000_000))).toBe(true);
    expect(await farLink(relay)).toMatchObject({ state: "up", ssh_connections_since_bring_up: 0 });
    // A worker that dies takes its session with it, not the connection: the next worker is reached without anybody.
    const { workers } = await relay.json<{ workers: { process: { pid: number } }[] }>("worker", "status");
    process.kill(workers[0]!.process.pid, "SIGKILL");
    await eventually(async () => (await farLink(relay)).state !== "up", { what: "the end of the session" });
    // The connection is held meanwhile, so that nobody is needed, and a command waits for the worker that is on its way back.
    expect((await farLink(relay)).state).toBe("connecting");
    const waiting = relay.ok("job", "status", id);
    site.worker.start();
    expect(await waiting).toContain("succeeded");
    expect((await farLink(relay)).state).toBe("up");
    expect(await relay.ok("job", "read-log", id)).toBe(site.user.name);
    expect(await relay.ok("disconnect", "far")).toBe("far is down");
    expect(site.sshd.connections()).toBe(1);

    // The same over one process of the user's own ssh.
    await relay.ok("cluster", "add", "--name", "far", "--ssh-client", "openssh");
    expect(await relay.ok("connect", "far")).toStartWith("far is up: ");
    const over = await relay.submit("--wait", "--", "id", "-un");
    expect(await relay.ok("job", "read-log", over)).toBe(site.user.name);
    const link = await farLink(relay);
    expect([link.state, link.ssh_connections_since_bring_up, link.ledger.map(({ outcome }) => outcome)]).toEqual([
      "up",
      0,
      ["open", "open"],
    ]);
    // The site allows one session, and that is the link.
    const probe = await relay.run(["cluster", "probe", "far"]);
    expect(probe.stderr).toContain("[channel_refused]");
    expect(probe.stderr).toContain("clio-relay disconnect far, then this, then clio-relay connect far");
    site.signalSessions("KILL");
    await eventually(async () => (await farLink(relay)).state === "authorization_required", { what: "the end of the link" });
    expect((await relay.run(["job", "list"])).code).toBe(4);
    await relay.ok("disconnect", "far");
    expect(site.sshd.connections()).toBe(2);
    await relay.ok("cluster", "add", "--name", "far", "--ssh-client", "builtin");

    // A worker with another key is another worker.
    site.worker.stop();
    fs.rmSync(path.join(site.user.home, ".local/share/clio-relay/core/far/link-host-key"));
    site.worker.start();
    const other = await relay.run(["connect", "far"]);
    expect([other.code, other.stderr]).toEqual([4, expect.stringContaining("[host_key_changed]")]);
    site.worker.stop();
  });
});

describeWith(["sshd", "ssh"], "a site that allows no session", () => {
  test("is said to be one: to disconnect and repeat would not help", async () => {
    await using site = await FarSite.start({ config: ["MaxSessions 0"] });
    await using relay = await site.desk();
    const { code, stderr } = await relay.run(["connect", "far"]);
    expect([code, stderr]).toEqual([5, expect.stringContaining("that sshd allows no session at all (MaxSessions 0)")]);
  });
});
