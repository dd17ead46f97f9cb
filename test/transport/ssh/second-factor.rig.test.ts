import { afterAll, beforeAll, expect, test } from "bun:test";
import { authorize, makeKey, SshAgent } from "../../rigs/sshd.ts";
import { SecondFactorSshd } from "../../rigs/sshd-2fa.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { type Answers, Desk, noQuestions, output, Person } from "./desk.ts";

describeWith(["sshd-2fa", "ssh"], "a login node that asks for a password and a one-time code", () => {
  let rig: SecondFactorSshd;
  let before = 0;
  const desks: Desk[] = [];

  beforeAll(async () => {
    rig = await SecondFactorSshd.start();
  });

  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    for (const desk of desks) desk[Symbol.dispose]();
  });

  function desk(...lines: string[]): Desk {
    const made = new Desk();
    desks.push(made);
    made.know(rig.sshd.knownLine());
    made.configure("Host login", `  HostName ${rig.sshd.host}`, `  Port ${rig.sshd.port}`, `  User ${rig.user.name}`, ...lines);
    before = rig.sshd.connections();
    return made;
  }
  const agrees = (one: Desk): void => expect(one.ledger.entries()).toHaveLength(rig.sshd.connections() - before);
  const right: Answers = ({ message }) => (/code/i.test(message) ? rig.code() : rig.password);

  test("asks once, and everything after that rides the session", async () => {
    const one = desk();
    const person = new Person(right);
    await using link = await one.connect(person);
    expect(person.kinds).toEqual(["keyboard_interactive", "keyboard_interactive"]);
    expect(person.seen.map(({ host }) => host)).toEqual([`${rig.user.name}@login`, `${rig.user.name}@login`]);
    expect(person.seen.every(({ echo }) => !echo)).toBe(true);
    for (let turn = 0; turn < 5; turn++) expect(await output(link, `echo ${turn}`)).toBe(`${turn}\n`);
    expect(person.seen).toHaveLength(2);
    agrees(one);
  });

  test("a wrong code is asked for again, and is an error in the end", async () => {
    const one = desk("  NumberOfPasswordPrompts 2");
    let wrong = 1;
    const person = new Person((prompt) => (/code/i.test(prompt.message) && wrong-- > 0 ? "000000" : right(prompt)));
    await using link = await one.connect(person);
    expect(await output(link, "echo there")).toBe("there\n");
    expect(person.seen.some(({ message }) => message.startsWith("That was not accepted."))).toBe(true);

    const never = new Person((prompt) => (/code/i.test(prompt.message) ? "000000" : rig.password));
    const error = await one.refusal(never);
    expect(error.code).toBe("authentication_failed");
    expect(error.data).toMatchObject({ methods: ["keyboard-interactive"], tried: ["keyboard-interactive"] });
    expect(never.seen).toHaveLength(4);
    expect(one.ledger.entries()[1]).toMatchObject({ outcome: "refused", reason: "authentication_failed" });
    agrees(one);
  });

  test("a wrong password does not come to the code", async () => {
    const one = desk("  NumberOfPasswordPrompts 1");
    const error = await one.refusal(new Person(({ message }) => (/code/i.test(message) ? rig.code() : "wrong")));
    expect(error.code).toBe("authentication_failed");
    agrees(one);
  });

  test.each<[string, Answers]>([
    ["at the password", () => undefined],
    ["at the code", ({ message }) => (/code/i.test(message) ? undefined : rig.password)],
  ])("a person who goes away %s cancels it", async (_where, answers) => {
    const one = desk();
    expect((await one.refusal(new Person(answers))).code).toBe("prompt_cancelled");
    expect(one.ledger.entries()).toMatchObject([{ outcome: "cancelled", reason: "prompt_cancelled" }]);
    agrees(one);
  });

  test("a key first, and then password and code, where the site wants all of them", async () => {
    await using strict = await SecondFactorSshd.start({
      config: ["PubkeyAuthentication yes", "AuthenticationMethods publickey,keyboard-interactive"],
    });
    using keys = temporaryDirectory();
    const [stranger, key] = [makeKey(keys.path), makeKey(keys.path, { passphrase: "opensesame" })];
    const [made, rsa] = [makeKey(keys.path), makeKey(keys.path, { type: "rsa" })];
    authorize(strict.user, `${key}.pub`);
    using one = new Desk();
    one.know(strict.sshd.knownLine());
    const lines = ["Host login", `  HostName ${strict.sshd.host}`, `  Port ${strict.sshd.port}`, `  User ${strict.user.name}`];
    one.configure(...lines, `  IdentityFile ${stranger}`, `  IdentityFile ${key}`);
    const person = new Person(({ kind, message }) =>
      kind === "passphrase" ? "opensesame" : /code/i.test(message) ? strict.code() : strict.password,
    );
    await using link = await one.connect(person);
    expect(await output(link, "echo there")).toBe("there\n");
    expect(person.kinds).toEqual(["passphrase", "keyboard_interactive", "keyboard_interactive"]);
    await using agent = await SshAgent.start(stranger, made, rsa);
    for (const identity of [made, rsa]) {
      authorize(strict.user, `${identity}.pub`);
      one.configure(...lines, "  IdentityAgent SSH_AUTH_SOCK");
      const other = new Person(({ message }) => (/code/i.test(message) ? strict.code() : strict.password));
      await using through = await one.connect(other, { agentSocket: agent.socket });
      expect(await output(through, "echo there")).toBe("there\n");
      expect(other.kinds).toEqual(["keyboard_interactive", "keyboard_interactive"]);
    }
    authorize(strict.user, `${key}.pub`);
    one.configure(...lines, `  IdentityFile ${key}`);
    const error = await one.refusal(new Person(({ kind }) => (kind === "passphrase" ? "opensesame" : "wrong")));
    expect(error.code).toBe("authentication_failed");
    expect(error.message).toContain("a further proof is wanted");
    expect(one.ledger.entries()).toHaveLength(strict.sshd.connections());
  });

  test("with nobody to ask it is authorization_required, and one connection", async () => {
    const one = desk("  BatchMode yes");
    expect((await one.refusal(new Person(noQuestions))).code).toBe("authorization_required");
    agrees(one);
  });
});
