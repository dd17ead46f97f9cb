import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { RemoteWorker } from "../../rigs/remote-worker.ts";
import { SecondFactorSshd } from "../../rigs/sshd-2fa.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { onTerminal } from "../on-terminal.ts";
import type { SourceRelay } from "../source-relay.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

/** Run the command, then let the terminal itself say whether what is typed is shown (stty(1)). */
const thenEcho = (command: string): string => `trap : QUIT; ${command}; c=$?; stty -a | grep -o -- '-*echo ' | tr -d '\\n'; (exit $c)`;

describeWith(["sshd-2fa", "ssh"], "a login node that asks for a password and a code", () => {
  const files = temporaryDirectory();
  let node: SecondFactorSshd;
  let worker: RemoteWorker;

  beforeAll(async () => {
    node = await SecondFactorSshd.start();
    worker = new RemoteWorker(node.user, "far");
    worker.start();
  });
  afterAll(async () => {
    await node[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  const desk = (): Promise<SourceRelay> => sshDesk({ directory: files.path, sshd: node.sshd, user: node.user, known: "" });

  /** What the daemon, the ledger and the registry have written down. */
  const written = (relay: SourceRelay): string =>
    [...new Bun.Glob("**/*").scanSync({ cwd: relay.home, dot: true })]
      .map((name) => path.join(relay.home, name))
      .filter((file) => fs.statSync(file).isFile())
      .map((file) => fs.readFileSync(file, "latin1"))
      .join("\n");

  test("is asked for on the terminal once, unseen, while input and output lead elsewhere; nothing is asked again, and nothing typed is written down", async () => {
    const before = node.sshd.connections();
    await using relay = await desk();
    const command = onTerminal(relay, ["connect", "far"], {}, thenEcho(`"$@" </dev/null >out 2>err`));
    await command.shows("Is it the right one");
    expect(command.shown()).toContain(node.sshd.fingerprint());
    command.press("yes\r");
    await command.shows("Password: ");
    command.press(`${node.password}\r`);
    await command.shows("Verification code: ");
    const code = node.code();
    command.press(`${code}\r`);
    expect(await command.end()).toBe(0);
    expect(fs.readFileSync(path.join(relay.directory, "out"), "utf8")).toMatch(/^far is up: /);
    expect(command.shown()).not.toContain(node.password);
    expect(command.shown()).not.toContain(code);
    expect(command.shown()).toEndWith("echo ");
    expect(command.shown()).not.toEndWith("-echo ");
    for (let round = 0; round < 5; round++) {
      const id = await relay.submit("--wait", "--", "id", "-un");
      expect(await relay.ok("job", "read-log", id)).toBe(node.user.name);
    }
    const text = written(relay);
    expect(text).toContain("clio-relay connect far");
    expect(text).not.toContain(node.password);
    expect(text).not.toContain(code);
    expect(node.sshd.connections() - before).toBe(1);
  });

  test.each([
    ["Ctrl-C", "\x03", 130],
    ["Ctrl-D", "\x04", 4],
    ["Ctrl-\\", "\x1c", 130],
  ])("%s at a question gives it up, and the terminal shows what is typed again", async (_name, key, code) => {
    const before = node.sshd.connections();
    await using relay = await desk();
    const command = onTerminal(relay, ["connect", "far"], {}, thenEcho(`"$@"`));
    await command.shows("Is it the right one");
    command.press("yes\r");
    await command.shows("Password: ");
    command.press(key);
    expect(await command.end()).toBe(code);
    expect(command.shown()).not.toEndWith("-echo ");
    expect(command.shown()).toEndWith("echo ");
    const { ledger, state } = await eventually(async () => {
      const far = await farLink(relay);
      return far.ledger[0]?.outcome === "cancelled" ? far : null;
    });
    expect([ledger.length, state]).toEqual([1, "down"]);
    expect(node.sshd.connections() - before).toBe(1);
  });

  test("a second command joins the first: it sees what happens and is asked nothing", async () => {
    const before = node.sshd.connections();
    await using relay = await desk();
    const first = onTerminal(relay, ["connect", "far"]);
    await first.shows("Is it the right one");
    const second = onTerminal(relay, ["connect", "far"]);
    await second.shows("does so already");
    const other = relay.start(["job", "list"]);
    first.press("yes\r");
    await first.shows("Password: ");
    first.press(`${node.password}\r`);
    await first.shows("Verification code: ");
    first.press(`${node.code()}\r`);
    expect(await Promise.all([first.end(), second.end(), other.exited])).toEqual([0, 0, 0]);
    expect(second.shown()).toContain("far is up: ");
    expect(second.shown()).not.toContain("Password: ");
    expect(node.sshd.connections() - before).toBe(1);
  });

  test("the same where the daemon listens on loopback", async () => {
    const before = node.sshd.connections();
    await using relay = await sshDesk({
      directory: files.path,
      sshd: node.sshd,
      user: node.user,
      env: { CLIO_RELAY_LOCAL_LISTEN: "tcp" },
    });
    const command = onTerminal(relay, ["connect", "far"]);
    await command.shows("Password: ");
    command.press(`${node.password}\r`);
    await command.shows("Verification code: ");
    command.press(`${node.code()}\r`);
    expect(await command.end()).toBe(0);
    const id = await relay.submit("--wait", "--", "id", "-un");
    expect(await relay.ok("job", "read-log", id)).toBe(node.user.name);
    // A command that is killed takes its dial with it.
    await relay.ok("disconnect", "far");
    const killed = onTerminal(relay, ["connect", "far"]);
    await killed.shows("Password: ");
    for (const pid of relay.processes("connect far")) await relay.kill(pid);
    await eventually(async () => (await farLink(relay)).ledger[1]?.outcome === "cancelled", { what: "the end of the dial" });
    await killed.child.exited;
    expect(node.sshd.connections() - before).toBe(2);
  });
});
