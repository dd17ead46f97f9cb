import { afterAll, beforeAll, expect, test } from "bun:test";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd, userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { Desk, noQuestions, output, Person } from "./desk.ts";

describeWith(["sshd", "ssh", "tcsh", "fish"], "odd login nodes", () => {
  const keys = temporaryDirectory();
  let key: string;
  const users: RigUser[] = [];

  beforeAll(() => {
    key = makeKey(keys.path);
  });

  afterAll(() => {
    for (const user of users) removeUser(user);
    keys[Symbol.dispose]();
  });

  function makeLogin(shell = "/bin/bash"): RigUser {
    const user = makeUser({ shell });
    users.push(user);
    authorize(user, `${key}.pub`);
    return user;
  }

  function deskFor(sshd: Sshd, user: RigUser, ...lines: string[]): Desk {
    const desk = new Desk();
    desk.know(sshd.knownLine());
    desk.configure(
      "Host login",
      `  HostName ${sshd.host}`,
      `  Port ${sshd.port}`,
      `  User ${user.name}`,
      `  IdentityFile ${key}`,
      ...lines,
    );
    return desk;
  }

  test("MaxSessions 1: the second channel at a time is refused, and the session goes on", async () => {
    const user = makeLogin();
    await using sshd = await startSshd({ config: ["MaxSessions 1"] });
    using desk = deskFor(sshd, user);
    await using link = await desk.connect(new Person(noQuestions));
    const held = await link.session.exec("cat");
    held.stderr.resume();
    const refused = await link.session.exec("echo second").catch((error: { code: string }) => error.code);
    expect(refused).toBe("channel_refused");
    held.stream.end("still there");
    const chunks: Buffer[] = [];
    for await (const chunk of held.stream) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toBe("still there");
    await held.exited;
    // The server lets go of a session a moment after its end is told.
    const next = await eventually(() => output(link, "echo next").catch(() => null), { what: "a session that is free again" });
    expect(next).toBe("next\n");
    expect(desk.ledger.entries()).toHaveLength(sshd.connections());
  });

  test("forwarding switched off: channels to sockets and ports are refused, commands run", async () => {
    const user = makeLogin();
    await using sshd = await startSshd({ config: ["AllowTcpForwarding no", "AllowStreamLocalForwarding no"] });
    using desk = deskFor(sshd, user);
    await using link = await desk.connect(new Person(noQuestions));
    for (const open of [link.session.openSocket("/run/any.sock"), link.session.openTcp("127.0.0.1", 22)]) {
      expect(await open.catch((error: { code: string }) => error.code)).toBe("channel_refused");
    }
    expect(await output(link, "echo there")).toBe("there\n");
    expect(desk.ledger.entries()).toHaveLength(sshd.connections());
  });

  test("a hop that forwards nothing is named", async () => {
    const user = makeLogin();
    await using inner = await startSshd();
    await using outer = await startSshd({ config: ["AllowTcpForwarding no"] });
    using desk = deskFor(outer, user);
    desk.know(outer.knownLine() + inner.knownLine());
    desk.configure(
      "Host login",
      `  HostName ${inner.host}`,
      `  Port ${inner.port}`,
      `  ProxyJump ${user.name}@${outer.host}:${outer.port}`,
      `  User ${user.name}`,
      `Match all`,
      `  IdentityFile ${key}`,
    );
    const error = await desk.refusal(new Person(noQuestions));
    expect(error.code).toBe("channel_refused");
    expect(error.message).toContain(`${user.name}@${outer.host}:${outer.port}`);
    expect([outer.connections(), inner.connections(), desk.ledger.entries().length]).toEqual([1, 0, 1]);
  });

  test("a banner is shown, without what a terminal would obey", async () => {
    const user = makeLogin();
    const banner = userFile(user, "banner", "Authorized use only\x1b[2J\r\n*** \u202e ***\n", 0o644);
    await using sshd = await startSshd({ config: [`Banner ${banner}`] });
    using desk = deskFor(sshd, user);
    await using link = await desk.connect(new Person(noQuestions));
    expect(link.banner).toBe("Authorized use only^[[2J\n*** \\u202e ***\n");
    expect(desk.notices).toEqual([link.banner]);
  });

  test.each(["/bin/bash", "/bin/tcsh", "/usr/bin/fish"])("a chatty profile of %s does not keep anybody out", async (shell) => {
    const user = makeLogin(shell);
    for (const file of [".bashrc", ".profile", ".cshrc"]) userFile(user, file, "echo 'welcome to the machine'\n");
    userFile(user, ".config/config.fish", "echo 'welcome'\n");
    await using sshd = await startSshd();
    using desk = deskFor(sshd, user);
    await using link = await desk.connect(new Person(noQuestions));
    const script = await link.session.exec("exec /bin/sh -s");
    script.stderr.resume();
    script.stream.end("echo marked-$((6*7))\n");
    const chunks: Buffer[] = [];
    for await (const chunk of script.stream) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toEndWith("marked-42\n");
    expect(desk.ledger.entries()).toHaveLength(sshd.connections());
  });

  test("rules of the server for one user: a forced command, and a user who is kept out", async () => {
    const [forced, out] = [makeLogin(), makeLogin()];
    await using sshd = await startSshd({
      config: [`DenyUsers ${out.name}`, `Match User ${forced.name}`, "  ForceCommand echo forced"],
    });
    using desk = deskFor(sshd, forced);
    await using link = await desk.connect(new Person(noQuestions));
    expect(await output(link, "id")).toBe("forced\n");
    using other = deskFor(sshd, out);
    expect((await other.refusal(new Person(noQuestions))).code).toBe("authentication_failed");
  });

  test("too few attempts: the server ends the session, and that is a refusal of the person", async () => {
    const user = makeLogin();
    await using sshd = await startSshd({ config: ["MaxAuthTries 2"] });
    using desk = deskFor(sshd, user);
    const wrong = [1, 2, 3, 4].map(() => `  IdentityFile ${makeKey(keys.path)}`);
    desk.configure("Host login", `  HostName ${sshd.host}`, `  Port ${sshd.port}`, `  User ${user.name}`, ...wrong);
    const error = await desk.refusal(new Person(noQuestions));
    expect(error.code).toBe("authentication_failed");
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "refused" }]);
  });

  test("a server without a cipher that is ours is refused by name", async () => {
    const user = makeLogin();
    await using sshd = await startSshd({ config: ["Ciphers chacha20-poly1305@openssh.com"] });
    using desk = deskFor(sshd, user);
    const error = await desk.refusal(new Person(noQuestions));
    expect(error.code).toBe("algorithms_refused");
    expect(error.message).toContain("chacha20-poly1305@openssh.com");
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "refused", reason: "algorithms_refused" }]);
  });

  test("a configuration full of multiplexing and terminal directives changes nothing", async () => {
    const user = makeLogin();
    await using sshd = await startSshd();
    using desk = deskFor(
      sshd,
      user,
      "  ControlMaster auto",
      `  ControlPath ${keys.path}/%C`,
      "  ControlPersist yes",
      "  RequestTTY force",
      "  RemoteCommand tmux attach",
      "  LocalForward 1 localhost:1",
      "  RemoteForward 2222 localhost:22",
      "  DynamicForward 1080",
      "  ForwardAgent yes",
      "  ForwardX11 yes",
      "  PermitLocalCommand yes",
      "  LocalCommand touch should-not-be-there",
      "  ServerAliveInterval 1",
      "  Compression yes",
      "  GSSAPIAuthentication yes",
    );
    await using link = await desk.connect(new Person(noQuestions));
    expect(await output(link, "tty || echo none")).toBe("not a tty\nnone\n");
    expect(await output(link, "echo $SSH_AUTH_SOCK$DISPLAY")).toBe("\n");
    expect([...new Bun.Glob("**/should-not-be-there").scanSync({ cwd: desk.directory })]).toEqual([]);
    expect(desk.ledger.entries()).toHaveLength(sshd.connections());
  });
});
