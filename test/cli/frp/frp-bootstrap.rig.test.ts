import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { frpProgram } from "../../rigs/frp/programs.ts";
import { Frps } from "../../rigs/frp/server.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { kill, processesMarked } from "../../runner/leftovers.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

describeWith(["frp", "sshd", "ssh"], "a cluster that is set up over SSH and met through a frps", () => {
  const files = temporaryDirectory();
  let sshd: Sshd;
  let user: RigUser;
  let key: string;
  let frps: Frps;

  beforeAll(async () => {
    [sshd, frps] = await Promise.all([startSshd(), Frps.start()]);
    user = makeUser();
    key = makeKey(files.path);
    authorize(user, `${key}.pub`);
  });
  afterAll(async () => {
    for (const { pid } of processesMarked("HOME", user.home)) kill(pid);
    await frps[Symbol.asyncDispose]();
    await sshd[Symbol.asyncDispose]();
    removeUser(user);
    files[Symbol.dispose]();
  });

  const ofUser = (): string[] => processesMarked("HOME", user.home).map(({ command }) => command);
  const frpcs = (): string[] => ofUser().filter((command) => /frpc.* -c /.test(command));

  test("needs SSH once: bootstrap brings frpc by its digest and what it has to know", async () => {
    await using desk = await sshDesk({ directory: files.path, sshd, user, key });
    const digest = sha256Hex(fs.readFileSync(frpProgram("frpc")));
    const server = ["--frp-server-addr", "127.0.0.1", "--frp-server-port", String(frps.port), "--frp-protocol", "websocket"];
    const add = ["cluster", "add", "--name", "far", "--ssh-host", "login", ...server, "--frp-token-file", "-"];
    expect((await desk.run(add, { stdin: `${frps.token}\n` })).code).toBe(0);
    const executable = path.join(files.path, "clio-relay");
    fs.copyFileSync(EXECUTABLE, executable);
    const bootstrap = ["cluster", "bootstrap", "far", "--artifact", executable];
    const without = await desk.run(bootstrap);
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("clio-relay install-frp")]);

    await desk.ok("install-frp", "--from", frpProgram("frpc"), "--sha256", digest);
    expect(await desk.ok(...bootstrap, "--json")).not.toContain(frps.token);
    const there = path.join(user.home, ".local/share/clio-relay");
    expect(sha256Hex(fs.readFileSync(path.join(there, "frp", digest, "frpc")))).toBe(digest);
    expect(fs.statSync(path.join(there, "core/far/frp.json")).mode & 0o777).toBe(0o600);
    const up = () => eventually(async () => (await farLink(desk)).state === "up", { what: "the link through frps" });
    await up();
    // The same again changes nothing.
    const again = await desk.json<{ configured: { changed: boolean }; worker: { state: string } }>(...bootstrap);
    expect([again.configured.changed, again.worker.state]).toEqual([false, "kept"]);

    const [worker] = processesMarked("HOME", user.home).filter(({ command }) => command.includes("worker run"));
    expect(frpcs()).toHaveLength(1);
    kill(worker!.pid);
    await eventually(() => frpcs().length === 0, { what: "the end of a frpc whose worker was killed" });
    await desk.ok("worker", "start", "--cluster", "far", "--ssh");
    await up();

    const connections = sshd.connections();
    await desk.ok("disconnect", "far");
    await desk.ok("connect", "far");
    expect(await desk.ok("job", "read-log", await desk.submit("--wait", "--", "echo", "hello"))).toBe("hello");
    expect([(await farLink(desk)).ssh_connections_since_bring_up, sshd.connections()]).toEqual([0, connections]);

    const { removed } = await desk.json<{ removed: string[] }>("cluster", "uninstall", "far", "--yes");
    expect(removed).toContain(path.join(there, "frp"));
    await desk.ok("cluster", "remove", "far", "--yes");
    expect(fs.existsSync(path.join(desk.home, "config/frp/far.json"))).toBe(false);
  });
});
