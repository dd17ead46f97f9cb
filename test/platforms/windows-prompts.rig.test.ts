import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { SecondFactorSshd } from "../rigs/sshd-2fa.ts";
import { Wine } from "../rigs/wine.ts";
import { describeWith } from "../runner/components.ts";
import { eventually } from "../runner/wait.ts";
import { builtFor } from "./target.ts";

describeWith(["wine", "sshd-2fa"], "a person at a console of Windows", () => {
  let wine: Wine;
  let node: SecondFactorSshd;
  let executable: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    executable = builtFor("bun-windows-x64");
    wine = Wine.start();
    node = await SecondFactorSshd.start();
    const config = path.join(wine.scratch, "ssh_config");
    fs.writeFileSync(`${config}.known`, node.sshd.knownLine(), { mode: 0o600 });
    const lines = [
      ...["Host login", `  HostName ${node.sshd.host}`, `  Port ${node.sshd.port}`, `  User ${node.user.name}`, "  IdentityAgent none"],
      ...[`  UserKnownHostsFile ${Wine.path(`${config}.known`)}`, "  GlobalKnownHostsFile /dev/null"],
    ];
    fs.writeFileSync(config, `${lines.join("\n")}\n`, { mode: 0o600 });
    env = { CLIO_RELAY_HOME: Wine.path(path.join(wine.scratch, "home")), CLIO_RELAY_SSH_CONFIG: Wine.path(config) };
  });
  afterAll(async () => {
    await wine[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
  });

  test("is asked there for password and code, which are not shown", async () => {
    for (const args of [["init"], ["cluster", "add", "--name", "far", "--ssh-host", "login"]])
      expect((await wine.run(executable, args, env)).code).toBe(0);
    const command = wine.onConsole(executable, ["cluster", "probe", "far"], env);
    await eventually(() => command.shown().includes("Password: "), { what: "the question for the password" });
    await command.press(`${node.password}\r`);
    await eventually(() => command.shown().includes("Verification code: "), { what: "the question for the code" });
    const code = node.code();
    await command.press(`${code}\r`);
    await eventually(() => command.shown().includes("relay not installed"), { what: "the answer" });
    await command.ended;
    for (const secret of [node.password, code]) expect(command.shown()).not.toContain(secret);
    expect(node.sshd.connections()).toBe(1);
    expect((await wine.run(executable, ["disconnect", "far"], env)).code).toBe(0);

    // Where there is no console nobody is asked.
    const apart = await wine.run(executable, ["connect", "far"], env);
    expect([apart.code, apart.stderr]).toEqual([4, expect.stringContaining("[authorization_required]")]);
    await wine.run(executable, ["desktop", "stop"], env);
  });
});
