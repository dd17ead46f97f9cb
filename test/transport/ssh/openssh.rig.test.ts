import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { Duplex } from "node:stream";
import { RelayError } from "../../../src/domain/errors.ts";
import { type OpenSshConnection, runOpenSsh } from "../../../src/transport/ssh/openssh/connect.ts";
import type { Prompter } from "../../../src/transport/ssh/prompt.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, SshAgent, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { SecondFactorSshd } from "../../rigs/sshd-2fa.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { type Answers, Desk, noQuestions, Person } from "./desk.ts";

const ASKPASS = [process.execPath, path.join(import.meta.dir, "../../../src/main.ts"), "__askpass"];

/** Echoes lines back after a mark, and says who it is. */
const COMMAND = "exec /bin/sh -c 'echo \"mark $(id -un) $(tty)\"; exec cat'";

function nextText(stream: Duplex, until: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const onData = (chunk: Buffer): void => {
      text += chunk.toString();
      if (!text.includes(until)) return;
      stream.off("data", onData);
      resolve(text);
    };
    stream.on("data", onData);
    stream.once("close", () => reject(new Error(`it ended after ${JSON.stringify(text)}`)));
  });
}

function start(desk: Desk, prompter: Prompter, more: Partial<Parameters<typeof runOpenSsh>[0]> = {}): Promise<OpenSshConnection> {
  return runOpenSsh({ ...desk.request(prompter), command: COMMAND, askpass: ASKPASS, privateDirectory: desk.directory, ...more });
}

/** Start, see the mark, exchange a line, end. */
async function exchange(desk: Desk, prompter: Prompter, more: Partial<Parameters<typeof runOpenSsh>[0]> = {}): Promise<string> {
  const connection = await start(desk, prompter, more);
  const { duplex } = connection;
  try {
    const first = await Promise.race([nextText(duplex, "mark "), connection.failure.then((error) => Promise.reject(error))]);
    connection.opened();
    const back = nextText(duplex, "there and back");
    duplex.write("there and back\n");
    await back;
    return first;
  } finally {
    duplex.destroy();
    await connection.failure;
  }
}

/** What is left of private files once everything is over. */
const leftovers = (desk: Desk): string[] => fs.readdirSync(desk.directory).filter((name) => name.startsWith("ssh-"));

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

  const hostLines = (sshd: Sshd, name: string, ...lines: string[]): string[] => [
    "Host login",
    `  HostName ${sshd.host}`,
    `  Port ${sshd.port}`,
    `  User ${name}`,
    ...lines.map((line) => `  ${line}`),
  ];
  const right: Answers = ({ message }) => (/code/i.test(message) ? rig.code() : rig.password);

  test("password and code come through the person's prompts, once", async () => {
    using desk = new Desk();
    desk.know(rig.sshd.knownLine());
    desk.configure(...hostLines(rig.sshd, rig.user.name));
    const before = rig.sshd.connections();
    const person = new Person(right);
    expect(await exchange(desk, person)).toContain(`mark ${rig.user.name} not a tty`);
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
    await nextText(connection.duplex, "mark ");
    const all = seen.join("\n");
    expect(all).toContain("SSH_ASKPASS=");
    expect(all).not.toContain(rig.password);
    expect(all).not.toContain("api-token-value");
    connection.duplex.destroy();
    await connection.failure;
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
    const { failure } = await start(desk, new Person(answers));
    expect((await failure).code).toBe(code as RelayError["code"]);
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "cancelled", reason: code }]);
    expect(rig.sshd.connections() - before).toBe(1);
    expect(leftovers(desk)).toEqual([]);
  });

  test("wrong answers end it in ssh's own words", async () => {
    using desk = new Desk();
    desk.know(rig.sshd.knownLine());
    desk.configure(...hostLines(rig.sshd, rig.user.name, "NumberOfPasswordPrompts 1"));
    const { failure } = await start(desk, new Person(() => "wrong"));
    const error = await failure;
    expect(error.code).toBe("link_bringup_failed");
    expect(error.data).toMatchObject({ exit_code: 255, stderr: expect.stringContaining("Permission denied") });
    expect(desk.ledger.entries()).toMatchObject([{ outcome: "failed" }]);
  });

  test("an unknown host key is asked about, also where the configuration would take any", async () => {
    using desk = new Desk();
    desk.configure(...hostLines(plain, user.name, `IdentityFile ${key}`, "StrictHostKeyChecking no"));
    const person = new Person(({ message }) => (message.includes(plain.fingerprint()) ? "yes" : "opensesame"));
    expect(await exchange(desk, person)).toContain(`mark ${user.name}`);
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
    expect(await exchange(desk, new Person(noQuestions), { agentSocket: agent.socket })).toContain(`mark ${user.name} not a tty`);
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
    const controller = new AbortController();
    const attending = { requestedBy: "clio-relay connect rig", signal: controller.signal };
    const given = await start(desk, new Person(noQuestions), { attending, agentSocket: agent.socket });
    controller.abort(new RelayError("authorization_required", "the command ended"));
    expect((await given.failure).code).toBe("authorization_required");

    const second = new AbortController();
    const kept = await start(desk, new Person(noQuestions), {
      attending: { requestedBy: "x", signal: second.signal },
      agentSocket: agent.socket,
    });
    await nextText(kept.duplex, "mark ");
    kept.opened();
    second.abort(new Error("gone"));
    const back = nextText(kept.duplex, "still");
    kept.duplex.write("still\n");
    expect(await back).toContain("still");
    kept.duplex.destroy();
    expect((await kept.failure).code).toBe("link_down");
    await eventually(() => desk.ledger.entries()[1]!.ended_at, { what: "the end in the ledger" });
    expect(desk.ledger.entries().map(({ outcome }) => outcome)).toEqual(["cancelled", "open"]);
  });

  test("without ssh, without anybody, and with pins it is refused before anything is dialed", async () => {
    using desk = new Desk();
    desk.configure(...hostLines(plain, user.name));
    const { config, entry } = desk.request(new Person(noQuestions));
    const code = async (more: Partial<Parameters<typeof runOpenSsh>[0]>): Promise<string> =>
      start(desk, new Person(noQuestions), more).then(
        () => "started",
        (error: RelayError) => error.code,
      );
    expect(await code({ config: { ...config, sshProgram: null } })).toBe("configuration_error");
    expect(await code({ attending: null })).toBe("authorization_required");
    expect(await code({ entry: { ...entry, hostKeyPins: ["SHA256:x"] } })).toBe("ssh_config_unsupported");
    expect(await code({ entry: { ...entry, host: "-oProxyCommand=true" } })).toBe("configuration_error");
    expect(desk.ledger.entries()).toEqual([]);
    expect(leftovers(desk)).toEqual([]);
  });
});
