import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../src/domain/errors.ts";
import { NOBODY } from "../../../src/transport/ssh/prompt.ts";
import type { SshRequest } from "../../../src/transport/ssh/request.ts";
import { freePort } from "../../rigs/free-port.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, SshAgent, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { SecondFactorSshd } from "../../rigs/sshd-2fa.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { type Answers, Desk, noQuestions, Person } from "./desk.ts";
import { codeOf, end, exchange, hostLines, leftovers, start, whoIs } from "./openssh.ts";

describeWith(["sshd-2fa", "ssh"], "one ssh process of the user's OpenSSH", () => {
  let rig: SecondFactorSshd;
  let plain: Sshd;
  let user: RigUser;
  let key: string;
  const keys = fs.mkdtempSync("/tmp/clio-relay-keys-");

  beforeAll(async () => {
    rig = await SecondFactorSshd.start();
    plain = await startSshd();
    user = makeUser();
    key = makeKey(keys, { passphrase: "opensesame" });
    authorize(user, `${key}.pub`);
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
    removeUser(user);
    fs.rmSync(keys, { recursive: true });
  });

  const right: Answers = ({ message }) => (/code/i.test(message) ? rig.code() : rig.password);

  test("password and code come through the person's prompts, once", async () => {
    using desk = new Desk();
    desk.know(rig.sshd.knownLine());
    desk.configure(...hostLines(rig.sshd, rig.user.name));
    const before = rig.sshd.connections();
    const person = new Person(right);
    expect(await exchange(desk, person)).toBe(`${rig.user.name} not a tty`);
    expect(person.seen).toHaveLength(2);
    expect(person.seen.every(({ echo, host }) => !echo && host === `${rig.user.name}@login`)).toBe(true);
    expect(rig.sshd.connections() - before).toBe(1);
    expect(desk.ledger.entries()).toMatchObject([{ client: "openssh", outcome: "open", ended_at: expect.any(String) }]);
    expect(leftovers(desk)).toEqual([]);
  });

  test("no secret is in an argument or in the environment of ssh", async () => {
    using desk = new Desk();
    desk.know(rig.sshd.knownLine());
    desk.configure(...hostLines(rig.sshd, rig.user.name));
    const seen: string[] = [];
    const person = new Person((prompt) => {
      for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
        try {
          for (const file of ["cmdline", "environ"]) seen.push(fs.readFileSync(`/proc/${pid}/${file}`, "latin1"));
        } catch {
          // gone
        }
      }
      return right(prompt);
    });
    const connection = await start(desk, person, {
      config: { ...desk.request(person).config, variables: { PATH: process.env["PATH"], CLIO_RELAY_API_TOKEN: "api-token-value" } },
    });
    const all = seen.join("\n");
    expect(all).toContain("SSH_ASKPASS=");
    expect(all).not.toContain(rig.password);
    expect(all).not.toContain("api-token-value");
    await end(connection);
  });

  test.each<[string, Answers, string]>([
    ["goes away", () => undefined, "prompt_cancelled"],
    [
      "is not there",
      () => {
        throw new RelayError("authorization_required", "nobody is there");
      },
      "authorization_required",
    ],
  ])("a person who %s ends it with that", async (_what, answers, code) => {
    using desk = new Desk();
    desk.know(rig.sshd.knownLine());
    desk.configure(...hostLines(rig.sshd, rig.user.name));
    const before = rig.sshd.connections();
    expect(await codeOf(start(desk, new Person(answers)))).toBe(code);
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "cancelled", reason: code }]);
    expect(rig.sshd.connections() - before).toBe(1);
    expect(leftovers(desk)).toEqual([]);
  });

  test("wrong answers end it in ssh's own words", async () => {
    using desk = new Desk();
    desk.know(rig.sshd.knownLine());
    desk.configure(...hostLines(rig.sshd, rig.user.name, "NumberOfPasswordPrompts 1"));
    const error = await start(desk, new Person(() => "wrong")).then(
      () => null,
      (refused: RelayError) => refused,
    );
    expect(error?.code).toBe("authentication_failed");
    expect(error?.data).toMatchObject({ exit_code: 255, stderr: expect.stringContaining("Permission denied") });
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "refused", reason: "authentication_failed" }]);
  });

  test("why it did not let anybody in is told as by the built-in client", async () => {
    const other = fs
      .readFileSync(`${makeKey(keys)}.pub`, "utf8")
      .split(" ")
      .slice(0, 2)
      .join(" ");
    const place = `[${plain.host}]:${plain.port}`;
    const withKey = hostLines(plain, user.name, `IdentityFile ${key}`, "IdentityAgent none");
    const refused = async (known: string, answers: Answers | null, lines: readonly string[] = withKey): Promise<[string, string]> => {
      using desk = new Desk();
      if (known !== "") desk.know(known);
      desk.configure(...lines);
      const person = answers === null ? NOBODY : new Person(answers);
      const code = await codeOf(start(desk, person));
      return [code, desk.ledger.entries()[0]?.outcome ?? "none"];
    };
    expect(await refused(`${place} ${other}\n`, null)).toEqual(["host_key_changed", "refused"]);
    expect(await refused(`@revoked ${place} ${plain.hostKey()}\n`, null)).toEqual(["host_key_refused", "refused"]);
    expect(await refused("", () => "no")).toEqual(["host_key_refused", "refused"]);
    expect(await refused(plain.knownLine(), () => "wrong")).toEqual(["passphrase_wrong", "refused"]);
    expect(await refused(plain.knownLine(), () => "")).toEqual(["authentication_failed", "refused"]);
    const closed = hostLines({ ...plain, host: "127.0.0.1", port: await freePort() } as Sshd, user.name);
    expect(await refused(plain.knownLine(), null, closed)).toEqual(["host_unreachable", "failed"]);
    const nowhere = ["Host login", "  HostName no-such-name.invalid"];
    expect(await refused(plain.knownLine(), null, nowhere)).toEqual(["host_unreachable", "failed"]);
  });

  test("what is asked is known by its kind", async () => {
    for (const [known, kind] of [
      ["", "host_key"],
      [plain.knownLine(), "passphrase"],
    ] as const) {
      using desk = new Desk();
      if (known !== "") desk.know(known);
      desk.configure(...hostLines(plain, user.name, `IdentityFile ${key}`, "IdentityAgent none"));
      await expect(start(desk, NOBODY)).rejects.toMatchObject({ code: "authorization_required", data: { kind } });
    }
  });

  test("an unknown host key is asked about, also where the configuration would take any", async () => {
    using desk = new Desk();
    desk.configure(...hostLines(plain, user.name, `IdentityFile ${key}`, "StrictHostKeyChecking no"));
    const person = new Person(({ message }) => (message.includes(plain.fingerprint()) ? "yes" : "opensesame"));
    expect(await exchange(desk, person)).toBe(`${user.name} not a tty`);
    expect(person.seen).toHaveLength(2);
    expect(desk.knownHosts).toContain(plain.hostKey());
  });

  test("multiplexing, terminals, forwards and commands of the user do not reach it, on jumps neither", async () => {
    await using inner = await startSshd();
    await using agent = await SshAgent.start(plainKeyOf(user));
    using desk = new Desk();
    desk.know(plain.knownLine() + inner.knownLine());
    const sockets = desk.file("mux");
    const everything = [
      "ControlMaster auto",
      `ControlPath ${sockets}-%C`,
      "ControlPersist yes",
      "RequestTTY force",
      "RemoteCommand echo not this",
      "PermitLocalCommand yes",
      `LocalCommand touch ${desk.file("local-command")}`,
      `LocalForward ${desk.file("forward")} localhost:1`,
      "SessionType none",
      "ForkAfterAuthentication yes",
      "StdinNull yes",
      "LogLevel QUIET",
    ];
    desk.configure(
      "Host jump",
      `  HostName ${plain.host}`,
      `  Port ${plain.port}`,
      ...hostLines(inner, user.name, "ProxyJump jump"),
      "Host *",
      `  User ${user.name}`,
      "  IdentityAgent SSH_AUTH_SOCK",
      ...everything.map((line) => `  ${line}`),
    );
    const before = plain.connections();
    expect(await exchange(desk, new Person(noQuestions), { agentSocket: agent.socket })).toBe(`${user.name} not a tty`);
    expect([plain.connections() - before, inner.connections()]).toEqual([1, 1]);
    expect(desk.ledger.entries()).toMatchObject([{ via: ["jump"], outcome: "open" }]);
    expect(fs.readdirSync(desk.directory).sort()).toEqual(["config", "known_hosts", "ledger"]);
  });

  /** A key without a passphrase that lets the user in besides the other. */
  function plainKeyOf(owner: RigUser): string {
    const made = makeKey(keys);
    fs.writeFileSync(path.join(keys, "both"), fs.readFileSync(`${key}.pub`, "utf8") + fs.readFileSync(`${made}.pub`, "utf8"));
    authorize(owner, path.join(keys, "both"));
    return made;
  }

  test("it ends with its request until it is open, and afterwards with the connection", async () => {
    await using agent = await SshAgent.start(plainKeyOf(user));
    using desk = new Desk();
    desk.know(plain.knownLine());
    desk.configure(...hostLines(plain, user.name, "IdentityAgent SSH_AUTH_SOCK"));
    const given = AbortSignal.abort(new RelayError("authorization_required", "the command ended"));
    const controller = new AbortController();
    const more = (signal: AbortSignal): Partial<SshRequest> => ({ attending: { requestedBy: "x", signal }, agentSocket: agent.socket });
    expect(await codeOf(start(desk, new Person(noQuestions), more(given)))).toBe("authorization_required");
    const early = start(desk, new Person(noQuestions), more(controller.signal));
    await eventually(() => desk.ledger.entries().length > 0, { what: "the dial" });
    controller.abort(new RelayError("authorization_required", "the command ended"));
    expect(await codeOf(early)).toBe("authorization_required");

    const second = new AbortController();
    const kept = await start(desk, new Person(noQuestions), more(second.signal));
    second.abort(new Error("gone"));
    expect(await whoIs(kept)).toStartWith(user.name);
    await end(kept);
    await eventually(() => desk.ledger.entries()[1]!.ended_at, { what: "the end in the ledger" });
    expect(desk.ledger.entries().map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["cancelled", "authorization_required"],
      ["open", null],
    ]);
    expect(leftovers(desk)).toEqual([]);
  });

  test("without ssh, without anybody, and with pins it is refused before anything is dialed", async () => {
    using desk = new Desk();
    desk.configure(...hostLines(plain, user.name));
    const { config, entry } = desk.request(new Person(noQuestions));
    const code = (more: Partial<SshRequest>): Promise<string> => codeOf(start(desk, new Person(noQuestions), more));
    expect(await code({ config: { ...config, sshProgram: null } })).toBe("configuration_error");
    expect(await code({ attending: null })).toBe("authorization_required");
    expect(await code({ entry: { ...entry, hostKeyPins: ["SHA256:x"] } })).toBe("ssh_config_unsupported");
    expect(await code({ entry: { ...entry, host: "-oProxyCommand=true" } })).toBe("configuration_error");
    expect(desk.ledger.entries()).toEqual([]);
    expect(leftovers(desk)).toEqual([]);
  });
});
