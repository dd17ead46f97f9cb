import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { RemoteWorker } from "../rigs/remote-worker.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../rigs/sshd.ts";
import { Wine } from "../rigs/wine.ts";
import { describeWith } from "../runner/components.ts";
import { builtFor } from "./target.ts";

describeWith(["wine", "sshd", "ssh"], "a desktop on Windows, and a cluster behind a login node", () => {
  let wine: Wine;
  let executable: string;
  let user: RigUser;
  let sshd: Sshd;
  let env: Record<string, string>;

  beforeAll(async () => {
    executable = builtFor("bun-windows-x64");
    wine = Wine.start();
    user = makeUser();
    const key = makeKey(wine.scratch);
    authorize(user, `${key}.pub`);
    sshd = await startSshd();
    new RemoteWorker(user, "far").start();
    const config = path.join(wine.scratch, "ssh_config");
    fs.writeFileSync(`${config}.known`, sshd.knownLine(), { mode: 0o600 });
    const lines = [
      "Host login",
      `  HostName ${sshd.host}`,
      `  Port ${sshd.port}`,
      `  User ${user.name}`,
      `  IdentityFile ${Wine.path(key)}`,
      "  IdentityAgent none",
      `  UserKnownHostsFile ${Wine.path(`${config}.known`)}`,
      "  GlobalKnownHostsFile /dev/null",
    ];
    fs.writeFileSync(config, `${lines.join("\n")}\n`, { mode: 0o600 });
    env = {
      CLIO_RELAY_HOME: Wine.path(path.join(wine.scratch, "home")),
      CLIO_RELAY_SSH_CONFIG: Wine.path(config),
      CLIO_RELAY_CLUSTER: "far",
    };
  });
  afterAll(async () => {
    await wine[Symbol.asyncDispose]();
    await sshd[Symbol.asyncDispose]();
    removeUser(user);
  });

  async function ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await wine.run(executable, args, env);
    expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
    return stdout.trim();
  }

  test("connects once, submits, watches, and reads what the job left, over the loopback form of the local interface", async () => {
    await ok("init");
    await ok("cluster", "add", "--name", "far", "--ssh-host", "login");
    expect(await ok("connect", "far")).toMatch(/^far is up: worker /);
    const id = await ok(
      "job",
      "submit",
      "--output",
      "out/*",
      "--",
      "sh",
      "-c",
      "id -un; mkdir -p out; head -c 3000000 /dev/zero > out/zeros",
    );
    expect(await ok("job", "watch", id)).toContain(user.name);
    expect(await ok("job", "read-log", id)).toBe(user.name);
    const { artifacts } = JSON.parse(await ok("job", "list-artifacts", id, "--json")) as {
      artifacts: { artifact_id: string; size_bytes: number }[];
    };
    const zeros = artifacts.find(({ size_bytes }) => size_bytes === 3_000_000)!;
    await ok("job", "read-artifact", zeros.artifact_id, "-o", Wine.path(path.join(wine.scratch, "zeros")));
    expect(fs.readFileSync(path.join(wine.scratch, "zeros")).equals(Buffer.alloc(3_000_000))).toBe(true);
    expect(JSON.parse(await ok("link", "list", "--json"))).toMatchObject({
      links: [{ cluster: "far", state: "up", ssh_connections_since_bring_up: 0 }],
    });
    expect(sshd.connections()).toBe(1);
    expect(await ok("disconnect", "far")).toBe("far is down");
    await ok("desktop", "stop");
  });
});
