import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import { RelayError } from "../../../src/domain/errors.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, SshAgent, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { type Answers, Desk, noQuestions, output, Person } from "./desk.ts";

describeWith(["sshd", "ssh"], "a login node that takes keys", () => {
  const keys = temporaryDirectory();
  let user: RigUser;
  let plainKey: string;
  let lockedKey: string;

  beforeAll(() => {
    user = makeUser();
    plainKey = makeKey(keys.path);
    lockedKey = makeKey(keys.path, { passphrase: "opensesame" });
    fs.writeFileSync(`${keys.path}/all`, fs.readFileSync(`${plainKey}.pub`, "utf8") + fs.readFileSync(`${lockedKey}.pub`, "utf8"));
    authorize(user, `${keys.path}/all`);
  });

  afterAll(() => {
    removeUser(user);
    keys[Symbol.dispose]();
  });

  const host = (sshd: Sshd, ...lines: string[]): string[] => [
    "Host login",
    `  HostName ${sshd.host}`,
    `  Port ${sshd.port}`,
    `  User ${user.name}`,
    ...lines.map((line) => `  ${line}`),
  ];
  const agrees = (desk: Desk, sshd: Sshd): void => expect(desk.ledger.entries()).toHaveLength(sshd.connections());

  test("lets a key in; an unknown host key is asked about once and remembered, hashed where the configuration says so", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`, "HashKnownHosts yes"));
    const person = new Person(() => "yes");
    {
      await using link = await desk.connect(person);
      expect(await output(link, "id -un")).toBe(`${user.name}\n`);
      expect(link.hops).toEqual([{ host: "login", hostName: "127.0.0.1", port: sshd.port, user: user.name }]);
      expect(desk.ledger.entries()).toMatchObject([
        { outcome: "open", ended_at: null, target: `${user.name}@127.0.0.1:${sshd.port}`, via: [] },
      ]);
    }
    expect(person.seen).toHaveLength(1);
    expect(person.seen[0]).toMatchObject({ kind: "host_key", echo: true });
    expect(person.seen[0]!.message).toContain(sshd.fingerprint());
    expect(desk.knownHosts).toStartWith("|1|");
    await using again = await desk.connect(new Person(noQuestions));
    expect(await output(again, "echo there")).toBe("there\n");
    agrees(desk, sshd);
    expect(sshd.connections()).toBe(2);
  });

  test.each<[string, string, Answers, string, number]>([
    ["declined", "ask", () => "no", "host_key_refused", 1],
    ["answered with nonsense", "ask", () => "perhaps", "host_key_refused", 3],
    ["answered with another fingerprint", "ask", () => "SHA256:somethingelse", "host_key_refused", 1],
    ["not allowed", "yes", noQuestions, "host_key_refused", 0],
    ["walked away from", "no", () => undefined, "prompt_cancelled", 1],
  ])("an unknown host key that is %s ends it", async (_what, strict, answers, code, asked) => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`, `StrictHostKeyChecking ${strict}`));
    const person = new Person(answers);
    const error = await desk.refusal(person);
    expect(error.code).toBe(code as RelayError["code"]);
    expect(person.seen).toHaveLength(asked);
    expect(desk.knownHosts).toBe("");
    expect(desk.ledger.entries()).toMatchObject([{ outcome: code === "prompt_cancelled" ? "cancelled" : "refused", reason: code }]);
    agrees(desk, sshd);
  });

  test("accept-new takes an unknown key without asking, and never a changed one", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`, "StrictHostKeyChecking accept-new"));
    {
      await using link = await desk.connect(new Person(noQuestions));
      expect(link.banner).toBe("");
    }
    expect(desk.knownHosts).toBe(sshd.knownLine());
    const before = sshd.fingerprint();
    await sshd.changeHostKey();
    const error = await desk.refusal(new Person(noQuestions));
    expect(error.code).toBe("host_key_changed");
    expect(error.data).toMatchObject({
      fingerprint: sshd.fingerprint(),
      expected: [before],
      command: `ssh-keygen -R '[127.0.0.1]:${sshd.port}' -f ${desk.file("known_hosts")}`,
    });
    expect(error.message).toContain(sshd.fingerprint());
    expect(error.message).toContain(before);
    expect(error.hint).toContain("ssh-keygen -R");
    agrees(desk, sshd);
  });

  test("a pinned key comes before known_hosts, in both directions", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`));
    const entry = (pin: string) => ({ entry: { cluster: "rig", host: "login", hostKeyPins: [pin] } });
    await using link = await desk.connect(new Person(noQuestions), entry(sshd.fingerprint()));
    expect(link.hops).toHaveLength(1);
    expect(desk.knownHosts).toBe("");
    desk.know(sshd.knownLine());
    const error = await desk.refusal(new Person(noQuestions), entry("SHA256:other"));
    expect(error.code).toBe("host_key_changed");
    agrees(desk, sshd);
  });

  test("of a server's keys the one is asked for that is known", async () => {
    await using sshd = await startSshd({ hostKeyTypes: ["ed25519", "ecdsa", "rsa"] });
    for (const type of ["rsa", "ecdsa", "ed25519"]) {
      using desk = new Desk();
      desk.configure(...host(sshd, `IdentityFile ${plainKey}`));
      desk.know(sshd.knownLine(type));
      await using link = await desk.connect(new Person(noQuestions));
      expect(await output(link, "echo there")).toBe("there\n");
      expect(desk.knownHosts).toBe(sshd.knownLine(type));
    }
  });

  test("a passphrase is asked for when the server would take the key, again when it is wrong, and is an error after three", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.know(sshd.knownLine());
    desk.configure(...host(sshd, `IdentityFile ${lockedKey}`));
    const attempts = ["wrong", "opensesame"];
    const person = new Person(() => attempts.shift());
    await using link = await desk.connect(person);
    expect(await output(link, "echo there")).toBe("there\n");
    expect(person.kinds).toEqual(["passphrase", "passphrase"]);
    expect(person.seen.every(({ echo }) => !echo)).toBe(true);
    const wrong = new Person(() => "wrong");
    expect((await desk.refusal(wrong)).code).toBe("passphrase_wrong");
    expect(wrong.seen).toHaveLength(3);
    const skipping = new Person(() => "");
    const error = await desk.refusal(skipping);
    expect(error.code).toBe("authentication_failed");
    expect(skipping.seen).toHaveLength(1);
    agrees(desk, sshd);
    expect(desk.ledger.entries().map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["open", null],
      ["refused", "passphrase_wrong"],
      ["refused", "authentication_failed"],
    ]);
  });

  test("a passphrase is not asked for a key that the server does not take", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.know(sshd.knownLine());
    desk.configure(...host(sshd, `IdentityFile ${makeKey(keys.path, { passphrase: "secret" })}`, `IdentityFile ${plainKey}`));
    await using link = await desk.connect(new Person(noQuestions));
    expect(await output(link, "echo there")).toBe("there\n");
  });

  test.each(["rsa", "ecdsa", "ed25519"])("keys of type %s let in, from a file, with a passphrase and from the agent", async (type) => {
    const made = [makeKey(keys.path, { type }), makeKey(keys.path, { type, passphrase: "passphrase" }), makeKey(keys.path, { type })];
    if (type !== "ed25519")
      made.push(makeKey(keys.path, { type, passphrase: "passphrase", format: "PEM" }), makeKey(keys.path, { type, format: "PEM" }));
    const other = makeUser();
    await using sshd = await startSshd();
    await using agent = await SshAgent.start(made[2]!);
    using desk = new Desk();
    try {
      fs.writeFileSync(`${keys.path}/of-type`, made.map((key) => fs.readFileSync(`${key}.pub`, "utf8")).join(""));
      authorize(other, `${keys.path}/of-type`);
      desk.know(sshd.knownLine());
      for (const key of made) {
        const lines = key === made[2] ? ["IdentityAgent SSH_AUTH_SOCK"] : [`IdentityFile ${key}`];
        desk.configure(...host(sshd, ...lines).map((line) => line.replace(user.name, other.name)));
        await using link = await desk.connect(new Person(() => "passphrase"), { agentSocket: agent.socket });
        expect(await output(link, "id -un")).toBe(`${other.name}\n`);
      }
      agrees(desk, sshd);
    } finally {
      removeUser(other);
    }
  });

  test("IdentitiesOnly keeps the agent's other keys back, and IdentityAgent names another one", async () => {
    await using sshd = await startSshd();
    await using agent = await SshAgent.start(plainKey);
    using desk = new Desk();
    desk.know(sshd.knownLine());
    desk.configure(...host(sshd, `IdentityAgent ${agent.socket}`));
    await using link = await desk.connect(new Person(noQuestions));
    expect(await output(link, "echo there")).toBe("there\n");
    desk.configure(...host(sshd, `IdentityAgent ${agent.socket}`, "IdentitiesOnly yes"));
    expect((await desk.refusal(new Person(noQuestions))).code).toBe("authentication_failed");
    // The public half alone is enough to name a key that the agent has.
    fs.copyFileSync(`${plainKey}.pub`, desk.file("only.pub"));
    desk.configure(...host(sshd, `IdentityAgent ${agent.socket}`, "IdentitiesOnly yes", `IdentityFile ${desk.file("only.pub")}`));
    await using named = await desk.connect(new Person(noQuestions));
    expect(await output(named, "echo there")).toBe("there\n");
    agrees(desk, sshd);
  });

  test("an agent that is gone and a key that others can read are said, and stop nothing", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.know(sshd.knownLine());
    const open = desk.file("open-key");
    fs.copyFileSync(plainKey, open);
    fs.chmodSync(open, 0o644);
    desk.configure(...host(sshd, "IdentityAgent SSH_AUTH_SOCK", `IdentityFile ${open}`, `IdentityFile ${desk.file("absent")}`));
    const error = await desk.refusal(new Person(noQuestions), { agentSocket: desk.file("no-agent") });
    expect(error.code).toBe("authentication_failed");
    expect(error.data["skipped"]).toEqual([expect.stringContaining("chmod 600"), expect.stringContaining("no-agent")]);
    agrees(desk, sshd);
  });

  test("nothing is dialed when nobody asked for it, and a dial is given up with its request", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`));
    expect((await desk.refusal(new Person(noQuestions), { attending: null })).code).toBe("authorization_required");
    expect(desk.ledger.entries()).toEqual([]);
    expect(sshd.connections()).toBe(0);

    const controller = new AbortController();
    const goingAway = new Person(() => {
      controller.abort(new RelayError("authorization_required", "the command ended"));
      return "yes";
    });
    const attending = { requestedBy: "clio-relay connect rig", signal: controller.signal };
    expect((await desk.refusal(goingAway, { attending })).code).toBe("authorization_required");
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "cancelled" }]);
    agrees(desk, sshd);
  });

  test("a server that does not wait for the person, and one that stops in the middle, are a bring-up that failed", async () => {
    await using impatient = await startSshd({ config: ["LoginGraceTime 1"] });
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.know(impatient.knownLine() + sshd.knownLine());
    desk.configure(...host(impatient, `IdentityFile ${lockedKey}`));
    const slow = { ask: () => eventually(() => impatient.log.includes("Timeout before authentication") && "opensesame") };
    expect((await desk.refusal(slow)).code).toBe("link_bringup_failed");
    desk.configure(...host(sshd, `IdentityFile ${lockedKey}`));
    const ending = {
      ask: () => {
        sshd.cut();
        return Promise.resolve("opensesame");
      },
    };
    expect((await desk.refusal(ending)).code).toBe("link_bringup_failed");
    expect(desk.ledger.entries().map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
  });

  test("a known_hosts that cannot be read ends it before anybody is let in, and leaves nothing open", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`));
    fs.mkdirSync(desk.file("known_hosts"));
    expect((await desk.refusal(new Person(noQuestions))).code).toBe("local_file_unusable");
    await eventually(() => /Connection (?:closed|reset) by/.test(sshd.log), { what: "the end of the connection" });
    agrees(desk, sshd);
  });

  test("a relative CLIO_RELAY_SSH_CONFIG is taken from the directory of the request", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.know(sshd.knownLine());
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`));
    for (const sshProgram of ["ssh", null]) {
      const { config } = desk.request(new Person(noQuestions));
      await using link = await desk.connect(new Person(noQuestions), { config: { ...config, sshProgram, configFile: "config" } });
      expect(await output(link, "echo there")).toBe("there\n");
    }
    agrees(desk, sshd);
  });

  test("BatchMode asks nobody", async () => {
    await using sshd = await startSshd();
    using desk = new Desk();
    desk.configure(...host(sshd, `IdentityFile ${plainKey}`, "BatchMode yes"));
    expect((await desk.refusal(new Person(noQuestions))).code).toBe("authorization_required");
    agrees(desk, sshd);
  });
});
